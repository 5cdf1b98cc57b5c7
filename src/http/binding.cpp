#include "http/binding.hpp"

#include "http/endpoint.hpp"

namespace berth::http {
namespace {

Error in_words_of_http(api::Part part, Error error) {
  using namespace parameters_detail;
  switch (part) {
    case api::Part::target: return to_parameter_error("path parameter", std::move(error));
    case api::Part::options: return to_parameter_error("query parameter", std::move(error));
    case api::Part::range: return out_of_range(error.issues.front());
    case api::Part::body: return error;
  }
  return error;
}

Response http_reply(api::Reply reply, unsigned status, const Request& request) {
  Response response{.status = status, .body = std::move(reply.json)};
  if (reply.version) {
    response.headers.emplace_back("ETag", "\"" + std::to_string(*reply.version) + "\"");
  }
  if (reply.next) {
    response.headers.emplace_back("Link", endpoint_detail::next_link(request, *reply.next));
  }
  return response;
}

// The handler owns the entry, and the server owns the handler.
Task<Response> run_bound(const api::Entry& entry, unsigned status, core::Call call,
                         const Request& request, const PathValues& values) {
  api::Arguments given{.target = to_object(entry.target, values),
                       .options = to_object(entry.options, request.query),
                       .body = [&request] { return endpoint_detail::json_body(request); },
                       .explain = in_words_of_http};
  BERTH_CO_TRY(api::Reply reply, co_await entry.run(std::move(call), std::move(given)));
  co_return http_reply(std::move(reply), status, request);
}

Shape describe_bound(const api::Entry& entry, SchemaBook& book) {
  api::Shape from = entry.describe(book);
  Shape shape;
  shape.add(Shape::In::path, entry.target, std::move(from.target));
  shape.add(Shape::In::query, entry.options, std::move(from.options));
  shape.body = std::move(from.body);
  shape.answer = std::move(from.answer);
  if (entry.answers == api::AnswerKind::stored) shape.answer_headers = {"ETag"};
  if (entry.answers == api::AnswerKind::page) shape.answer_headers = {"Link"};
  return shape;
}

std::vector<std::string_view> names_of_fields(const std::vector<api::Field>& fields) {
  std::vector<std::string_view> names;
  names.reserve(fields.size());
  for (const api::Field& field : fields) names.push_back(field.name);
  return names;
}

}  // namespace

Route bind(const api::Table& operations, std::string_view tag, Binding binding) {
  const api::Entry* const found = operations.find(binding.operation);
  BERTH_ASSERT(found != nullptr);
  BERTH_ASSERT(endpoint_detail::names_fit(binding.path, names_of_fields(found->target)));
  const auto entry = std::make_shared<const api::Entry>(*found);
  auto handler = [entry, status = binding.status](core::Call who, const Request& request,
                                                  const PathValues& values) {
    return run_bound(*entry, status, std::move(who), request, values);
  };
  return Route{.verb = binding.verb,
               .path = std::move(binding.path),
               .operation = entry->name,
               .needs = entry->needs,
               .tag = std::string{tag},
               .says = entry->says,
               .status = binding.status,
               .body_bytes_max = binding.body_bytes_max,
               .ends_with_client = binding.ends_with_client,
               .handler = PlainHandler{std::move(handler)},
               .describe = [entry](SchemaBook& book) { return describe_bound(*entry, book); }};
}

std::vector<Route> bind_all(const api::Table& operations, std::string_view tag,
                            std::initializer_list<Binding> bindings) {
  std::vector<Route> routes;
  for (const Binding& binding : bindings) routes.push_back(bind(operations, tag, binding));
  return routes;
}

void append(std::vector<Route>& all, std::vector<Route> more) {
  for (Route& route : more) all.push_back(std::move(route));
}

}  // namespace berth::http
