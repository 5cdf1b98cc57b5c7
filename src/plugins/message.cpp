#include "plugins/message.hpp"

#include <boost/json/serialize.hpp>

namespace berth::plugins {
namespace {

constexpr std::string_view separator_start = "\xE2\x80";  // prefix of U+2028 and U+2029, among
                                                          // others

// Only strings can contain them, and there an escape is equivalent.
std::string without_separators(std::string line) {
  if (line.find(separator_start) == std::string::npos) return line;
  std::string out;
  out.reserve(line.size() + 64);
  std::size_t done = 0;
  for (std::size_t at = line.find(separator_start); at != std::string::npos;
       at = line.find(separator_start, at + 1)) {
    const char last = at + 2 < line.size() ? line[at + 2] : '\0';
    if (last != '\xA8' && last != '\xA9') continue;
    out.append(line, done, at - done);
    out += last == '\xA8' ? "\\u2028" : "\\u2029";
    done = at + 3;
  }
  out.append(line, done);
  return out;
}

std::string finished(std::string line) {
  line = without_separators(std::move(line));
  line += '\n';
  return line;
}

std::string json_text(std::string_view text) {
  return bj::serialize(bj::value(bj::string(text)));
}

void add_call(std::string& line, std::string_view method, const bj::value& params,
              const std::optional<bj::object>& invocation) {
  line += R"("method":)";
  line += json_text(method);
  line += R"(,"params":)";
  line += bj::serialize(params);
  if (invocation) {
    line += R"(,"paperclipInvocation":)";
    line += bj::serialize(*invocation);
  }
  line += '}';
}

std::string_view text_of(const bj::value& value) {
  return {value.get_string().data(), value.get_string().size()};
}

bj::value taken(bj::object& from, std::string_view key) {
  bj::value* found = from.if_contains(key);
  return found == nullptr ? bj::value{} : std::move(*found);
}

std::optional<std::string> invocation_of(const bj::object& message) {
  const bj::value* id = message.if_contains("paperclipInvocationId");
  if (id == nullptr || !id->is_string()) return std::nullopt;
  return std::string{text_of(*id)};
}

// Plugins choose their codes freely, even as fractions. A code that is not a number is the plugin's
// error.
RpcError error_of(const bj::value& error) {
  RpcError out{.code = rpc_code::worker_error, .message = "the worker gave no reason"};
  const bj::object* object = error.if_object();
  if (object == nullptr) return out;
  if (const bj::value* code = object->if_contains("code"); code != nullptr && code->is_number()) {
    boost::system::error_code inexact;
    const auto number = code->to_number<std::int64_t>(inexact);
    if (!inexact) out.code = number;
  }
  if (const bj::value* text = object->if_contains("message");
      text != nullptr && text->is_string()) {
    out.message = text_of(*text);
  }
  return out;
}

}  // namespace

Message classify(bj::object message) {
  const bj::value* version = message.if_contains("jsonrpc");
  if (version == nullptr || !version->is_string() || text_of(*version) != "2.0") {
    return NoMessage{"it does not say \"jsonrpc\":\"2.0\""};
  }
  const bj::value* id = message.if_contains("id");
  const bj::value* error = message.if_contains("error");
  if (id != nullptr && (error != nullptr || message.contains("result"))) {
    Response response{.id = *id, .result = bj::value{}};
    if (error != nullptr && !error->is_null()) {
      response.result = std::unexpected(error_of(*error));
    } else {
      response.result = taken(message, "result");
    }
    return response;
  }
  const bj::value* method = message.if_contains("method");
  if (method == nullptr || !method->is_string()) return NoMessage{"it has no method"};
  std::string name{text_of(*method)};
  if (id == nullptr) {
    return Notification{std::move(name), taken(message, "params"), invocation_of(message)};
  }
  if (!id->is_string() && !id->is_number())
    return NoMessage{"its id is neither a number nor a string"};
  return Request{*id, std::move(name), taken(message, "params"), invocation_of(message)};
}

std::string request_line(std::uint64_t id, std::string_view method, const bj::value& params,
                         const std::optional<bj::object>& invocation) {
  std::string line = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + ',';
  add_call(line, method, params, invocation);
  return finished(std::move(line));
}

std::string notification_line(std::string_view method, const bj::value& params,
                              const std::optional<bj::object>& invocation) {
  std::string line = R"({"jsonrpc":"2.0",)";
  add_call(line, method, params, invocation);
  return finished(std::move(line));
}

std::string reply_line(const bj::value& id, const Reply& reply) {
  std::string line = R"({"jsonrpc":"2.0","id":)" + bj::serialize(id);
  if (reply) {
    line += R"(,"result":)" + bj::serialize(*reply) + '}';
  } else {
    line += R"(,"error":{"code":)" + std::to_string(reply.error().code) + R"(,"message":)" +
            json_text(as_utf8(reply.error().message)) + "}}";
  }
  return finished(std::move(line));
}

}  // namespace berth::plugins
