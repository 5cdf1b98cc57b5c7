#pragma once

#include "base/json/json.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

// The JSON-RPC 2.0 envelopes that plugins use.
namespace berth::plugins {

namespace rpc_code {
inline constexpr std::int64_t parse_error = -32700;
inline constexpr std::int64_t method_not_found = -32601;
inline constexpr std::int64_t internal = -32603;
inline constexpr std::int64_t worker_unavailable = -32000;
inline constexpr std::int64_t capability_denied = -32001;
inline constexpr std::int64_t worker_error = -32002;
inline constexpr std::int64_t timeout = -32003;
inline constexpr std::int64_t not_implemented = -32004;
inline constexpr std::int64_t scope_denied = -32005;
inline constexpr std::int64_t cross_tenant = -32006;
}  // namespace rpc_code

struct RpcError {
  std::int64_t code = rpc_code::internal;
  std::string message = {};
};
using Reply = std::expected<bj::value, RpcError>;

struct Request {
  bj::value id;  // a number or a text, echoed
  std::string method;
  bj::value params = nullptr;
  std::optional<std::string> invocation_id = {};
};

struct Notification {
  std::string method;
  bj::value params = nullptr;
  std::optional<std::string> invocation_id = {};
};

struct Response {
  bj::value id;
  Reply result;
};

struct NoMessage {
  std::string why;
};

using Message = std::variant<Response, Request, Notification, NoMessage>;

// Checked in the protocol's order: a response, a request, a notification, else none of these.
Message classify(bj::object message);

// One line with its '\n'. U+2028 and U+2029 are escaped, because some line readers end a line
// there.
std::string request_line(std::uint64_t id, std::string_view method, const bj::value& params,
                         const std::optional<bj::object>& invocation);
std::string notification_line(std::string_view method, const bj::value& params,
                              const std::optional<bj::object>& invocation);
std::string reply_line(const bj::value& id, const Reply& reply);

}  // namespace berth::plugins
