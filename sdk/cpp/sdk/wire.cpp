#include "sdk/wire.hpp"

#include <boost/json/serialize.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth::sdk {
namespace {

constexpr std::size_t read_bytes = std::size_t{64} << 10;

// The host's error response as our own error.
Error error_of(const bj::value& refused) {
  Error error{.code = Errc::plugin_call_failed, .message = "the host refused it"};
  const bj::object* object = refused.if_object();
  const bj::value* text = object != nullptr ? object->if_contains("message") : nullptr;
  if (text != nullptr && text->is_string()) error.message = std::string{text->get_string()};
  return error;
}

bj::object envelope(std::string_view method, bj::value params, const std::string& invocation) {
  bj::object message{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
  if (!invocation.empty()) message["paperclipInvocationId"] = invocation;
  return message;
}

}  // namespace

std::string line_of(const bj::object& message) {
  const std::string text = bj::serialize(message);
  std::string line;
  std::size_t copied = 0;
  // Both are E2 80 and one more byte in UTF-8, and occur only inside strings.
  for (std::size_t at = text.find("\xE2\x80"); at != std::string::npos && at + 2 < text.size();
       at = text.find("\xE2\x80", at + 2)) {
    if (text[at + 2] != '\xA8' && text[at + 2] != '\xA9') continue;
    line.append(text, copied, at - copied);
    line += text[at + 2] == '\xA8' ? "\\u2028" : "\\u2029";
    copied = at + 3;
  }
  line.append(text, copied);
  line += '\n';
  return line;
}

std::optional<LineReader::Line> LineReader::next() {
  bool is_too_long = false;
  while (true) {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) {
      Line line{.text = is_too_long ? std::string{} : buffer_.substr(0, end),
                .is_too_long = is_too_long};
      buffer_.erase(0, end + 1);
      scanned_ = 0;
      return line;
    }
    scanned_ = buffer_.size();
    if (buffer_.size() > limits::line_bytes) {
      is_too_long = true;
      buffer_.clear();
      buffer_.shrink_to_fit();
      scanned_ = 0;
    }
    const std::size_t had = buffer_.size();
    buffer_.resize(had + read_bytes);
    const ssize_t got = ::read(fd_, buffer_.data() + had, read_bytes);
    buffer_.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
  }
}

void HostLink::send(const bj::object& message) {
  const std::string line = line_of(message);
  const std::lock_guard lock{writing_};
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t wrote = ::write(out_.get(), line.data() + at, line.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return;  // the host has ended: the reader notices that too
    at += static_cast<std::size_t>(wrote);
  }
}

void HostLink::answer(const bj::value& id, bj::value result) {
  send({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

void HostLink::refuse(const bj::value& id, int code, std::string_view message, bj::object facts) {
  bj::object error{{"code", code}, {"message", as_utf8(message)}};
  if (!facts.empty()) error["data"] = std::move(facts);
  send({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}});
}

Result<bj::value> HostLink::ask(std::string_view method, bj::value params,
                                const std::string& invocation, std::chrono::milliseconds limit) {
  const auto asked = std::make_shared<Asked>();
  std::int64_t id = 0;
  {
    const std::lock_guard lock{asking_};
    if (asked_.size() >= limits::asked) {
      return fail(Errc::overloaded, "too many questions wait for the host",
                  "ask fewer at a time: the limit is " + std::to_string(limits::asked));
    }
    id = ++last_id_;
    asked_[id] = asked;
  }
  bj::object message = envelope(method, std::move(params), invocation);
  message["id"] = id;
  send(message);
  std::unique_lock lock{asking_};
  const bool came = asked->came.wait_for(lock, limit, [&] { return asked->answer.has_value(); });
  asked_.erase(id);
  if (!came) {
    return fail(Errc::timed_out, "the host has not answered " + std::string{method} + " within " +
                                     std::to_string(limit.count()) + " ms");
  }
  Result<bj::value> answer = *std::move(asked->answer);
  if (!answer) answer.error().message.insert(0, std::string{method} + ": ");
  return answer;
}

void HostLink::notify(std::string_view method, bj::value params, const std::string& invocation) {
  send(envelope(method, std::move(params), invocation));
}

void HostLink::answered(bj::object message) {
  const bj::value* id = message.if_contains("id");
  if (id == nullptr || !id->is_int64()) return;
  const std::lock_guard lock{asking_};
  const auto found = asked_.find(id->get_int64());
  if (found == asked_.end() || found->second->answer) return;
  if (const bj::value* refused = message.if_contains("error"); refused && !refused->is_null()) {
    found->second->answer = std::unexpected(error_of(*refused));
  } else {
    found->second->answer = message["result"];
  }
  found->second->came.notify_one();
}

}  // namespace berth::sdk
