#pragma once

#include "api/operation.hpp"
#include "http/route.hpp"
#include "http/server/message/parameters.hpp"

// Typed routes for what is not a call of an operation (binding.hpp): bytes, streams, sockets, and
// responses with header fields of their own.
namespace berth::http {

using api::None;

// The body as it was sent, whatever its media type. The request outlives the handler.
struct RawBody {
  std::string_view bytes;
};

template <class Path, class Query, class Body>
struct Input {
  Path path;
  Query query;
  Body body;
};

// A Response that the handler wrote itself, documented as the T that it usually holds.
template <class T>
struct Rendered {
  Response response;
};

// Answer is a described struct, a vector or a JSON value; core::Stored<T> (T and its ETag);
// core::Listing<T> (an array and its Link header); NoContent; or a Response or Rendered<T>, sent
// unchanged.
template <class Path, class Query, class Body, class Answer>
struct Endpoint {
  Verb verb = Verb::get;
  std::string path;
  core::Permission needs = core::Permission::instance_admin;
  std::string tag;
  std::string says;  // one sentence for readers of the OpenAPI document
  unsigned status = 200;
  std::vector<Shape::Other> others = {};  // for the same readers: other success responses
  std::optional<std::size_t> body_bytes_max = {};
  bool is_always_answered = false;
  bool ends_with_client = false;
  std::function<Task<Answer>(core::Call, Input<Path, Query, Body>)> call;

  operator Route() const;
};

// Server-sent events. `call` ends the stream by returning, and is cancelled when the client
// disconnects.
template <class Path, class Query>
struct EventStream {
  std::string path;
  core::Permission needs = core::Permission::instance_admin;
  std::string tag;
  std::string says;
  std::function<Task<>(core::Call, Input<Path, Query, None>,
                       std::optional<std::string> last_event_id, EventSink&)>
      call;

  operator Route() const;
};

// A WebSocket. When `call` returns, the socket is closed.
template <class Path, class Query>
struct SocketEndpoint {
  std::string path;
  core::Permission needs = core::Permission::instance_admin;
  std::string tag;
  std::string says;
  std::function<Task<>(core::Call, Input<Path, Query, None>, Socket&)> call;

  operator Route() const;
};

// Requests with any method below `path`, which ends in "/*", are passed to a foreign server. The
// handler returns the connection; that server handles the query, the body and the response.
template <class Path>
struct RelayEndpoint {
  std::string path;
  core::Permission needs = core::Permission::instance_admin;
  std::string tag;
  std::string says;
  std::function<Task<Fd>(core::Call, Path)> call;

  operator Route() const;
};

namespace endpoint_detail {

// The JSON body of a request; rejected unless its media type is JSON too. An empty body is an empty
// object.
Result<bj::value> json_body(const Request& request);
// "/api/x?status=active&after=CURSOR" as a Link header.
std::string next_link(const Request& request, std::string_view cursor);
// Every {name} of the path is a member of the path type and vice versa.
bool names_fit(std::string_view path, const std::vector<std::string_view>& members);

template <class T, class... M>
std::vector<std::string_view> names_of_members(boost::mp11::mp_list<M...> /*members*/) {
  return {wire_name<M>()...};
}

template <class Path, class Query, class Body>
Result<Input<Path, Query, Body>> decode_input(const Request& request, const PathValues& values) {
  BERTH_TRY(Path path, decode_path<Path>(values));
  BERTH_TRY(Query query, decode_query<Query>(request.query));
  if constexpr (std::same_as<Body, RawBody>) {
    return Input<Path, Query, Body>{std::move(path), std::move(query), RawBody{request.body}};
  } else {
    BERTH_TRY(const bj::value json, json_body(request));
    BERTH_TRY(Body body, decode<Body>(json));
    return Input<Path, Query, Body>{std::move(path), std::move(query), std::move(body)};
  }
}

template <class T>
Response to_response(const Request& request, unsigned status, T answer) {
  if constexpr (std::same_as<T, Response>) {
    return answer;
  } else if constexpr (json_detail::is_a<T, Rendered>) {
    return std::move(answer.response);
  } else if constexpr (std::same_as<T, NoContent>) {
    return Response{.status = 204, .content_type = {}};
  } else if constexpr (json_detail::is_a<T, core::Stored>) {
    Response response = json_response(status, answer.value);
    response.headers.emplace_back("ETag", "\"" + std::to_string(answer.version) + "\"");
    return response;
  } else if constexpr (json_detail::is_a<T, core::Listing>) {
    Response response = json_response(status, answer.rows);
    if (answer.next) response.headers.emplace_back("Link", next_link(request, *answer.next));
    return response;
  } else {
    return json_response(status, answer);
  }
}

template <class Path, class Query, class Body, class Answer>
Task<Response> run_endpoint(const Endpoint<Path, Query, Body, Answer>& endpoint, core::Call call,
                            const Request& request, const PathValues& values) {
  auto input = decode_input<Path, Query, Body>(request, values);
  if (!input) co_return std::unexpected(std::move(input).error());
  auto answer = co_await endpoint.call(std::move(call), *std::move(input));
  if (!answer) co_return std::unexpected(std::move(answer).error());
  co_return to_response(request, endpoint.status, *std::move(answer));
}

template <class Path, class Query>
Task<> run_events(const EventStream<Path, Query>& stream, core::Call call, const Request& request,
                  const PathValues& values, EventSink& sink) {
  auto input = decode_input<Path, Query, None>(request, values);
  if (!input) co_return std::unexpected(std::move(input).error());
  auto last_event_id = request.header("last-event-id");
  co_return co_await stream.call(std::move(call), *std::move(input), std::move(last_event_id),
                                 sink);
}

template <class Path, class Query>
Task<> run_socket(const SocketEndpoint<Path, Query>& endpoint, core::Call call,
                  const Request& request, const PathValues& values, Socket& socket) {
  auto input = decode_input<Path, Query, None>(request, values);
  if (!input) co_return std::unexpected(std::move(input).error());
  co_return co_await endpoint.call(std::move(call), *std::move(input), socket);
}

template <class Path>
Task<Fd> run_dial(const RelayEndpoint<Path>& endpoint, core::Call call, const PathValues& values) {
  auto path = decode_path<Path>(values);
  if (!path) co_return std::unexpected(std::move(path).error());
  co_return co_await endpoint.call(std::move(call), *std::move(path));
}

template <class Path, class Query>
Shape describe_parameters(SchemaBook& book) {
  Shape shape;
  shape.add(Shape::In::path, api::fields_of<Path>(), api::schemas_of<Path>(book));
  shape.add(Shape::In::query, api::fields_of<Query>(), api::schemas_of<Query>(book));
  return shape;
}

template <class T>
struct RenderedOf {};
template <class T>
struct RenderedOf<Rendered<T>> {
  using Type = T;
};

template <class Answer>
void describe_answer(Shape& shape, SchemaBook& book) {
  if constexpr (std::same_as<Answer, Response> || std::same_as<Answer, NoContent>) {
    shape.answer_type.clear();
  } else if constexpr (json_detail::is_a<Answer, Rendered>) {
    shape.answer = book.schema<typename RenderedOf<Answer>::Type>();
  } else if constexpr (json_detail::is_a<Answer, core::Stored>) {
    shape.answer = book.schema<decltype(Answer::value)>();
    shape.answer_headers = {"ETag"};
  } else if constexpr (json_detail::is_a<Answer, core::Listing>) {
    shape.answer = book.schema<decltype(Answer::rows)>();
    shape.answer_headers = {"Link"};
  } else {
    shape.answer = book.schema<Answer>();
  }
}

template <class Path, class Query, class Body, class Answer>
Shape describe_endpoint(SchemaBook& book) {
  Shape shape = describe_parameters<Path, Query>(book);
  if constexpr (std::same_as<Body, RawBody>) {
    shape.body = bj::object{{"type", "string"}, {"format", "binary"}};
    shape.body_type = "application/octet-stream";
  } else if constexpr (!std::same_as<Body, None>) {
    shape.body = book.schema<Body>();
  }
  describe_answer<Answer>(shape, book);
  return shape;
}

template <class Path, class Query>
Shape describe_stream(SchemaBook& book, std::string answer_type) {
  Shape shape = describe_parameters<Path, Query>(book);
  shape.answer_type = std::move(answer_type);
  return shape;
}

template <class Path>
bool fits(std::string_view path) {
  return names_fit(path, names_of_members<Path>(MembersOf<Path>{}));
}

}  // namespace endpoint_detail

template <class Path, class Query, class Body, class Answer>
Endpoint<Path, Query, Body, Answer>::operator Route() const {
  BERTH_ASSERT(endpoint_detail::fits<Path>(path));
  BERTH_ASSERT(call != nullptr);
  // The handler owns the endpoint that its coroutines refer to, and the server owns the handler.
  auto handler = [endpoint = *this](core::Call who, const Request& request,
                                    const PathValues& values) {
    return endpoint_detail::run_endpoint(endpoint, std::move(who), request, values);
  };
  auto describe = [others = others](SchemaBook& book) {
    Shape shape = endpoint_detail::describe_endpoint<Path, Query, Body, Answer>(book);
    shape.others = others;
    return shape;
  };
  return Route{.verb = verb,
               .path = path,
               .needs = needs,
               .tag = tag,
               .says = says,
               .status = std::same_as<Answer, NoContent> ? 204 : status,
               .body_bytes_max = body_bytes_max,
               .is_always_answered = is_always_answered,
               .ends_with_client = ends_with_client,
               .handler = PlainHandler{std::move(handler)},
               .describe = std::move(describe)};
}

template <class Path, class Query>
EventStream<Path, Query>::operator Route() const {
  BERTH_ASSERT(endpoint_detail::fits<Path>(path));
  BERTH_ASSERT(call != nullptr);
  auto handler = [stream = *this](core::Call who, const Request& request, const PathValues& values,
                                  EventSink& sink) {
    return endpoint_detail::run_events(stream, std::move(who), request, values, sink);
  };
  auto describe = [](SchemaBook& book) {
    return endpoint_detail::describe_stream<Path, Query>(book, "text/event-stream");
  };
  return Route{.verb = Verb::get,
               .path = path,
               .needs = needs,
               .tag = tag,
               .says = says,
               .handler = EventHandler{std::move(handler)},
               .describe = describe};
}

template <class Path, class Query>
SocketEndpoint<Path, Query>::operator Route() const {
  BERTH_ASSERT(endpoint_detail::fits<Path>(path));
  BERTH_ASSERT(call != nullptr);
  auto handler = [endpoint = *this](core::Call who, const Request& request,
                                    const PathValues& values, Socket& socket) {
    return endpoint_detail::run_socket(endpoint, std::move(who), request, values, socket);
  };
  auto describe = [](SchemaBook& book) {
    return endpoint_detail::describe_stream<Path, Query>(book, "");
  };
  return Route{.verb = Verb::get,
               .path = path,
               .needs = needs,
               .tag = tag,
               .says = says,
               .status = 101,
               .handler = SocketHandler{std::move(handler)},
               .describe = describe};
}

template <class Path>
RelayEndpoint<Path>::operator Route() const {
  BERTH_ASSERT(endpoint_detail::fits<Path>(path) && path.ends_with("/*"));
  BERTH_ASSERT(call != nullptr);
  auto handler = [endpoint = *this](core::Call who, const Request& /*request*/,
                                    const PathValues& values) {
    return endpoint_detail::run_dial(endpoint, std::move(who), values);
  };
  auto describe = [](SchemaBook& book) {
    return endpoint_detail::describe_stream<Path, None>(book, "*/*");
  };
  return Route{.verb = Verb::get,
               .path = path,
               .needs = needs,
               .tag = tag,
               .says = says,
               .handler = RelayHandler{std::move(handler)},
               .describe = describe};
}

}  // namespace berth::http
