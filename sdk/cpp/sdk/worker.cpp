#include "sdk/worker.hpp"

#include "sdk/method_names.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>

namespace berth::sdk {
namespace {

std::string text_at(const bj::object& message, std::string_view key) {
  const bj::value* found = message.if_contains(key);
  return found != nullptr && found->is_string() ? std::string{found->get_string()} : std::string{};
}

std::string invocation_of(const bj::object& message) {
  const bj::value* invocation = message.if_contains("paperclipInvocation");
  return invocation != nullptr && invocation->is_object() ? text_at(invocation->get_object(), "id")
                                                          : std::string{};
}

bool is_answer(const bj::object& message) {
  return message.contains("id") && (message.contains("result") || message.contains("error"));
}

Refusal refusal(int code, std::string message) {
  return {.code = code, .error = {.code = Errc::plugin_protocol, .message = std::move(message)}};
}

bj::object facts_of(const Error& error) {
  bj::object facts{{"code", name_of(error.code)}};
  if (!error.remedy.empty()) facts["remedy"] = as_utf8(error.remedy);
  return facts;
}

}  // namespace

Worker::Worker(Hooks hooks, Fd in, Fd out)
    : hooks_(std::move(hooks)), in_(std::move(in)), lines_(in_.get()), host_(std::move(out)) {}

void Worker::run() {
  work();
}

void Worker::work() {
  while (true) {
    if (const std::optional<Request> waited = wait_for_turn()) {
      answer(*waited);
      continue;
    }
    Request request = read_call();
    while (!leaves_reading(request)) request = read_call();
    answer(request);
  }
}

// A call that had no free thread; or nothing, and the caller becomes the reader.
std::optional<Worker::Request> Worker::wait_for_turn() {
  std::unique_lock lock{turn_lock_};
  ++idle_;
  turn_.wait(lock, [this] { return !waiting_.empty() || !is_read_; });
  --idle_;
  if (waiting_.empty()) {
    is_read_ = true;
    return std::nullopt;
  }
  std::optional<Request> request{std::move(waiting_.front())};
  waiting_.pop_front();
  return request;
}

// The next call that needs a thread. Others are answered at once, because that is quicker.
Worker::Request Worker::read_call() {
  while (const auto line = lines_.next()) {
    if (line->is_too_long) {
      host_.refuse(nullptr, rpc::parse_error,
                   "a line has at most " + std::to_string(limits::line_bytes) + " bytes");
      continue;
    }
    if (line->text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (std::optional<Request> request = take(line->text)) return *std::move(request);
  }
  close();
  end();
}

// True when another thread has taken over reading, and the caller is free for the request. If none
// can, the request waits for a thread, and the caller continues reading.
bool Worker::leaves_reading(Request& request) {
  std::unique_lock lock{turn_lock_};
  if (idle_ > 0 || threads_.size() < threads_max) {
    is_read_ = false;
    if (idle_ == 0) threads_.emplace_back([this] { work(); });
    lock.unlock();
    turn_.notify_one();
    return true;
  }
  if (waiting_.size() < waiting_max) {
    waiting_.push_back(std::move(request));
    return false;
  }
  lock.unlock();
  host_.refuse(request.id, rpc::worker_unavailable,
               "the worker has too many calls under way; try again later");
  return false;
}

// Only once: a host that requests the shutdown may close its pipe at the same moment.
void Worker::close() {
  if (!is_closing_.exchange(true) && hooks_.closing) hooks_.closing();
}

std::optional<Worker::Request> Worker::take(std::string_view line) {
  Result<bj::value> parsed = parse_json(line);
  bj::object* message = parsed ? parsed->if_object() : nullptr;
  if (message == nullptr || text_at(*message, "jsonrpc") != "2.0") {
    host_.refuse(nullptr, rpc::parse_error,
                 parsed ? "a line holds one JSON-RPC 2.0 object" : parsed.error().message);
  } else if (is_answer(*message)) {
    host_.answered(std::move(*message));
  } else if (!text_at(*message, "method").empty()) {
    return take_request(*message);
  }
  return std::nullopt;
}

std::optional<Worker::Request> Worker::take_request(bj::object& message) {
  const bj::value* id = message.if_contains("id");
  if (id == nullptr || id->is_null())
    return std::nullopt;  // a notification: none concerns a
                          // provider
  Request request{.id = *id,
                  .method = text_at(message, "method"),
                  .params = message.contains("params") ? std::move(message["params"]) : nullptr,
                  .invocation = invocation_of(message)};
  if (waits(request.method)) return request;
  answer(request);
  return std::nullopt;
}

bool Worker::waits(const std::string& name) const {
  if (name == "initialize") return static_cast<bool>(hooks_.setup);
  const auto method = std::ranges::find(hooks_.methods, name, &Method::name);
  return method != hooks_.methods.end() && method->runs == Method::Runs::on_a_thread;
}

void Worker::answer(const Request& request) {
  Answer answer = answer_of(request);
  if (answer) {
    host_.answer(request.id, *std::move(answer));
    if (request.method == "shutdown") end();
    return;
  }
  host_.refuse(request.id, answer.error().code, answer.error().error.message,
               facts_of(answer.error().error));
}

Answer Worker::answer_of(const Request& request) {
  Call call{host_, request.invocation};
  try {
    if (request.method == "initialize") return initialize(call);
    if (request.method == "shutdown") close();
    const auto method = std::ranges::find(hooks_.methods, request.method, &Method::name);
    if (method != hooks_.methods.end()) return method->answer(call, request.params);
  } catch (const std::exception& thrown) {
    return std::unexpected(refusal(rpc::worker_error, thrown.what()));
  }
  if (request.method == "shutdown" || request.method == "configChanged") return nullptr;
  if (request.method == "health") return bj::object{{"status", "ok"}};
  if (is_method_name(request.method)) {
    return std::unexpected(
        refusal(rpc::not_implemented, request.method + " is not implemented by this plugin"));
  }
  return std::unexpected(
      refusal(rpc::unknown_method, "Unknown method: " + in_quotes(request.method)));
}

Answer Worker::initialize(Call& call) {
  if (is_initialized_.exchange(true)) {
    return std::unexpected(refusal(rpc::worker_error, "Worker already initialized"));
  }
  const Result<> done = hooks_.setup ? hooks_.setup(call) : Result<>{};
  if (!done) {
    is_initialized_ = false;
    return std::unexpected(Refusal{.error = done.error()});
  }
  bj::array supported;
  for (const Method& method : hooks_.methods) supported.emplace_back(method.name);
  return bj::object{{"ok", true}, {"supportedMethods", std::move(supported)}};
}

// Threads inside hooks cannot be made to return, so nothing waits for them.
void Worker::end() {
  ::_exit(0);
}

}  // namespace berth::sdk
