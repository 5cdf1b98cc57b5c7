#pragma once

#include "api/fields.hpp"
#include "base/async/task.hpp"
#include "base/owned.hpp"
#include "core/access.hpp"
#include "core/call.hpp"
#include "http/server/message/message.hpp"

#include <functional>
#include <variant>

namespace berth::http {

// One server-sent event. A multi-line `data` remains one event.
struct Event {
  std::string id = {};
  std::string name = {};
  std::string data = {};
};

// Where an event stream writes. The response head is sent with the first event, so a handler that
// fails before it gets a plain error response.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Suspends while the client reads slowly; fails with `cancelled` once the client has
  // disconnected.
  virtual Task<> send(Event event) = 0;
  virtual bool open() const = 0;
};

struct Message {
  enum class Kind { text, binary };

  Kind kind = Kind::text;
  std::string bytes = {};
};

// The RFC 6455 close codes that handlers use.
enum class CloseCode : unsigned short {
  normal = 1000,
  going_away = 1001,
  policy_error = 1008,
  internal_error = 1011,
  try_again_later = 1013,
};

// A WebSocket. The upgrade is answered with the first receive or send, so a handler that fails
// earlier gets a plain error response. One receive and any number of sends may be in progress.
// Pings are answered, and a closed peer is noticed, only during a receive.
class Socket {
 public:
  virtual ~Socket() = default;
  // Nothing once the peer has closed.
  virtual Task<std::optional<Message>> receive() = 0;
  // Sends wait for one another; fails with `cancelled` once the peer has disconnected.
  virtual Task<> send(Message message) = 0;
  virtual Task<> close(CloseCode code, std::string reason) = 0;
};

// One {name} of a route's path and its decoded text.
struct PathValue {
  std::string_view name;
  std::string text;
};
using PathValues = std::vector<PathValue>;

// The wire name of a {name}, which a table may spell like the member: `company_id` is `companyId`.
std::string parameter_name(std::string_view placeholder);

// The handler's caller keeps the request, the values and the sink alive until it has ended.
using PlainHandler = std::function<Task<Response>(core::Call, const Request&, const PathValues&)>;
using EventHandler =
    std::function<Task<>(core::Call, const Request&, const PathValues&, EventSink&)>;
using SocketHandler = std::function<Task<>(core::Call, const Request&, const PathValues&, Socket&)>;
// Returns a connection to a foreign HTTP server. The session passes the request on to it, whatever
// its method, and relays the response. The body has not been read.
using RelayHandler = std::function<Task<Fd>(core::Call, const Request&, const PathValues&)>;
using Handler = std::variant<PlainHandler, EventHandler, SocketHandler, RelayHandler>;

// A route's input and output as JSON Schema, for the OpenAPI document.
struct Shape {
  enum class In { path, query };
  using Need = api::Need;
  struct Parameter {
    std::string name;
    In in;
    Need need;
    bj::object schema;
  };

  // Another success response, which the handler wrote itself: bytes, or nothing.
  struct Other {
    std::optional<unsigned> status = {};  // none: the route's status
    std::string type = {};                // none: it has no body
    std::vector<std::string> headers = {};
  };

  std::vector<Parameter> parameters = {};
  std::optional<bj::object> body = {};
  std::string body_type = "application/json";
  std::optional<bj::object> answer = {};
  std::string answer_type = "application/json";
  std::vector<std::string> answer_headers = {};
  std::vector<Other> others = {};

  // One parameter per field, with its schema.
  void add(In in, const std::vector<api::Field>& fields, std::vector<bj::object> schemas);
};

// One line of the route table: dispatch, permission, decoding and documentation. Made from a
// Binding of an operation; or from an Endpoint, EventStream, SocketEndpoint or RelayEndpoint, where
// the bytes, and not a value, are the point.
struct Route {
  Verb verb = Verb::get;
  std::string path;            // "/api/companies/{company}"
  std::string operation = {};  // the name of the one that it is bound to
  core::Permission needs = core::Permission::instance_admin;
  std::string tag;
  std::string says;
  unsigned status = 200;
  std::optional<std::size_t> body_bytes_max = {};  // instead of Limits::body_bytes_max
  // Its handler costs nothing, so it takes no share and is answered when other requests are
  // refused.
  bool is_always_answered = false;
  // It only reads, and may wait for what it reads: it is cancelled when its client goes.
  bool ends_with_client = false;
  Handler handler;
  std::function<Shape(SchemaBook&)> describe;
};

}  // namespace berth::http
