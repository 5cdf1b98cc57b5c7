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
    : hooks_(std::move(hooks)), in_(std::move(in)), host_(std::move(out)) {}

void Worker::run() {
  LineReader lines{in_.get()};
  while (const auto line = lines.next()) {
    if (line->is_too_long) {
      host_.refuse(nullptr, rpc::parse_error,
                   "a line has at most " + std::to_string(limits::line_bytes) + " bytes");
      continue;
    }
    if (line->text.find_first_not_of(" \t\r") != std::string::npos) take(line->text);
  }
  close();
  end();
}

// Once: a host that asks for the end may close its pipe at the same moment.
void Worker::close() {
  if (!is_closing_.exchange(true) && hooks_.closing) hooks_.closing();
}

void Worker::take(std::string_view line) {
  Result<bj::value> parsed = parse_json(line);
  bj::object* message = parsed ? parsed->if_object() : nullptr;
  if (message == nullptr || text_at(*message, "jsonrpc") != "2.0") {
    host_.refuse(nullptr, rpc::parse_error,
                 parsed ? "a line holds one JSON-RPC 2.0 object" : parsed.error().message);
  } else if (is_answer(*message)) {
    host_.answered(std::move(*message));
  } else if (!text_at(*message, "method").empty()) {
    take_request(*message);
  }
}

void Worker::take_request(bj::object& message) {
  const bj::value* id = message.if_contains("id");
  if (id == nullptr || id->is_null()) return;  // a remark: none of them concerns a provider
  Request request{.id = *id,
                  .method = text_at(message, "method"),
                  .params = message.contains("params") ? std::move(message["params"]) : nullptr,
                  .invocation = invocation_of(message)};
  if (waits(request.method)) return start(std::move(request));
  answer(request);
}

bool Worker::waits(const std::string& name) const {
  if (name == "initialize") return static_cast<bool>(hooks_.setup);
  const auto method = std::ranges::find(hooks_.methods, name, &Method::name);
  return method != hooks_.methods.end() && method->runs == Method::Runs::on_a_thread;
}

void Worker::start(Request request) {
  std::unique_lock lock{queue_lock_};
  if (queue_.size() >= waiting_max) {
    lock.unlock();
    host_.refuse(request.id, rpc::worker_unavailable,
                 "the worker has too many calls under way; try again later");
    return;
  }
  queue_.push_back(std::move(request));
  if (idle_ < queue_.size() && threads_.size() < threads_max) {
    threads_.emplace_back([this] { work(); });
  }
  queued_.notify_one();
}

void Worker::work() {
  std::unique_lock lock{queue_lock_};
  while (true) {
    ++idle_;
    queued_.wait(lock, [this] { return !queue_.empty(); });
    --idle_;
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    answer(request);
    lock.lock();
  }
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

// Threads inside of hooks cannot be made to return, so nothing waits for them.
void Worker::end() {
  ::_exit(0);
}

}  // namespace berth::sdk
