#include "plugins/worker.hpp"

#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "keeper/plugin_worker/plugin_worker.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace berth::plugins {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t stderr_tail_max = 8'000;
constexpr std::size_t stderr_line_max = 8'000;
constexpr std::string_view memory_limit = "the limit for all its processes is ";
// How long to wait for the other event after the first one: the kernel decides their order.
constexpr auto last_words = 2s;

Condition::Moment in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "SIG" + std::to_string(number) : "SIG" + std::string{name};
}

WorkerExit exit_of(int status) {
  WorkerExit exit;
  if (WIFSIGNALED(status)) {
    exit.signal = signal_name(WTERMSIG(status));
  } else {
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

// The limit from the keeper's message. A worker can write the same mark, so only a number is taken
// from what follows it.
std::string limit_in(std::string_view words) {
  words = words.substr(0, words.find('\n'));
  if (!words.starts_with(memory_limit)) return "";
  const std::string_view number = words.substr(memory_limit.size());
  const std::size_t digits = number.find_first_not_of("0123456789");
  if (digits == 0 || digits > 12) return "";
  return ", " + std::string{memory_limit} + std::string{number.substr(0, digits)} + " MB";
}

}  // namespace

std::string describe(const WorkerExit& exit) {
  return "code=" + (exit.code ? std::to_string(*exit.code) : "null") +
         ", signal=" + exit.signal.value_or("null");
}

Result<std::unique_ptr<Worker>> Worker::spawn(asio::any_io_executor executor,
                                              const WorkerCommand& command,
                                              const Launching& launching, Peer& peer,
                                              StderrReader* reader, ChannelLimits limits) {
  BERTH_TRY(Spawned made, spawn_program(command, launching));
  return std::make_unique<Worker>(std::move(executor), std::move(made), peer, reader, limits);
}

Worker::Worker(asio::any_io_executor executor, Spawned made, Peer& peer, StderrReader* reader,
               ChannelLimits limits)
    : executor_(executor),
      channel_(executor, std::move(made.out), std::move(made.in), peer, limits),
      err_(executor, made.err.release()),
      reader_(reader),
      pid_(made.pid),
      report_(std::move(made.report)),
      waiters_(executor),
      tasks_(executor) {
  tasks_.start("plugin.messages", read_messages());
  tasks_.start("plugin.stderr", read_stderr());
  tasks_.start("plugin.process", watch_process());
}

Worker::~Worker() {
  if (!exit_) ::kill(pid_, SIGHUP);
}

std::string Worker::end_record() const {
  std::string text = exit_ ? "Worker process exited (" + describe(*exit_) + ")"
                           : std::string{"Worker process was given up"};
  if (reason_) text += ": " + *reason_;
  // The keeper writes it after the last process of the tree has ended, so no other process can
  // forge the last one.
  const std::size_t mark = stderr_tail_.rfind(keeper::out_of_memory_mark);
  if (mark != std::string::npos && exit_ && exit_->signal == "SIGKILL") {
    text +=
        ": out of memory" +
        limit_in(std::string_view{stderr_tail_}.substr(mark + keeper::out_of_memory_mark.size())) +
        "; look in its log for what grew, or let fewer runs at a time into its environments";
  }
  return text;
}

Task<> Worker::read_messages() {
  const Result<> outcome = co_await channel_.run();
  messages_ended_ = true;
  waiters_.notify();
  if (!outcome) {
    kill(outcome.error().message);
    co_return Result<>{};
  }
  // A worker that closed its output can no longer answer; most have just ended.
  BERTH_CO_TRY(const bool gone, co_await wait_exit(last_words));
  if (!gone) kill("it closed its output and went on running");
  co_return Result<>{};
}

Task<> Worker::read_stderr() {
  std::array<char, 16 << 10> buffer{};
  while (true) {
    const auto [error, size] =
        co_await err_.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
    if (error) break;
    take_stderr({buffer.data(), size});
  }
  // A line without an end may have been cut anywhere.
  if (reader_ != nullptr && !stderr_line_.empty()) {
    reader_->read_stderr(stderr_line_, LinePart::beginning);
  }
  stderr_ended_ = true;
  waiters_.notify();
  co_return Result<>{};
}

void Worker::take_stderr(std::string_view bytes) {
  stderr_tail_.append(bytes);
  if (stderr_tail_.size() > stderr_tail_max) {
    stderr_tail_.erase(0, stderr_tail_.size() - stderr_tail_max);
  }
  for (const char c : bytes) {
    const bool ends = c == '\n';
    if (!ends && !skips_line_) stderr_line_ += c;
    const bool is_full = stderr_line_.size() >= stderr_line_max;
    if (!ends && !is_full) continue;
    if (reader_ != nullptr && !stderr_line_.empty()) {
      reader_->read_stderr(stderr_line_, ends ? LinePart::whole : LinePart::beginning);
    }
    skips_line_ = !ends;
    stderr_line_.clear();
  }
}

Task<> Worker::watch_process() {
  Fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))};
  if (!process) co_return io_failure("open process", std::to_string(pid_), errno);
  asio::posix::stream_descriptor ended{executor_, process.release()};
  int status = 0;
  while (true) {
    const auto [error] = co_await ended.async_wait(asio::posix::descriptor_base::wait_read,
                                                   asio::as_tuple(asio::use_awaitable));
    const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
    if (waited != 0 || error) break;
  }
  exit_ = exit_of(status);
  // Reads what is still in the pipes. If another process holds them open, their end is not awaited.
  const auto read = [this] { return messages_ended_ && stderr_ended_; };
  waiters_.notify();
  BERTH_CO_DO(co_await waiters_.wait_for(read, in(last_words)));
  channel_.close(end_record());
  boost::system::error_code ignored;
  err_.close(ignored);
  co_return Result<>{};
}

Task<bool> Worker::wait_exit(std::chrono::milliseconds limit) {
  BERTH_CO_DO(co_await waiters_.wait_for([this] { return exit_.has_value(); }, in(limit)));
  co_return exit_.has_value();
}

Task<WorkerExit> Worker::ended() {
  const auto over = [this] { return exit_ && messages_ended_ && stderr_ended_; };
  BERTH_CO_DO(co_await waiters_.wait_for(over));
  co_return *exit_;
}

Task<WorkerExit> Worker::stop(StopTimes times) {
  if (!exit_) {
    CallOptions options{.deadline = times.shutdown};
    co_await channel_.call("shutdown", bj::object{}, std::move(options));
    BERTH_CO_TRY(bool gone, co_await wait_exit(times.exit));
    if (!gone) {
      signal(SIGTERM);
      BERTH_CO_TRY(gone, co_await wait_exit(times.terminate));
    }
    if (!gone) {
      kill("it did not stop");
      BERTH_CO_TRY(gone, co_await wait_exit(times.kill));
    }
    if (!gone) signal(SIGKILL);
  }
  co_return co_await ended();
}

void Worker::kill(std::string why) {
  if (exit_) return;
  if (!reason_) reason_ = std::move(why);
  signal(SIGHUP);
}

void Worker::signal(int number) const {
  if (!exit_) ::kill(pid_, number);  // not reaped yet, so the pid is still its own
}

Task<> Worker::close() {
  kill("the server let go of it");
  BERTH_CO_DO(co_await ended());
  BERTH_CO_DO(co_await channel_.drain());
  co_return co_await tasks_.stop();
}

Task<Greeting> initialize(Worker& worker, const Manifest& manifest, const InstanceFacts& instance,
                          std::chrono::milliseconds deadline) {
  bj::object params{
      {"manifest", manifest.document},
      {"config", bj::object{}},
      {"instanceInfo", bj::object{{"instanceId", instance.instance_id},
                                  {"hostVersion", instance.host_version},
                                  {"deploymentMode", instance.deployment_mode},
                                  {"deploymentExposure", instance.deployment_exposure}}},
      {"apiVersion", 1},
      {"databaseNamespace", nullptr}};
  CallOptions options{.deadline = deadline};
  const CallResult result =
      co_await worker.channel().call("initialize", std::move(params), std::move(options));
  if (!result) {
    // The channel ends shortly before the process; the process's last output explains more.
    if (result.error().cause == CallFailure::Cause::gone) {
      BERTH_CO_DO(co_await worker.ended());
      co_return fail(Errc::plugin_unavailable, "initialize: " + worker.end_record());
    }
    co_return std::unexpected(to_error(result.error(), "initialize"));
  }
  const bj::object* answer = result->if_object();
  if (answer == nullptr || !is_true_in(*answer, "ok")) {
    co_return fail(Errc::plugin_protocol, "initialize: the worker did not answer {\"ok\":true}");
  }
  Greeting greeting;
  const bj::array* methods = array_in(*answer, "supportedMethods");
  if (methods == nullptr) co_return greeting;
  for (const bj::value& method : *methods) {
    if (method.is_string()) greeting.methods.emplace(method.get_string());
  }
  co_return greeting;
}

Dialect dialect_of(const std::set<std::string>& methods) {
  if (methods.contains("loginPtyOpen")) return Dialect::c;
  if (!methods.contains("setupTokenPtyOpen")) return Dialect::c;
  return methods.contains("duplexChannelOpen") ? Dialect::b : Dialect::a;
}

}  // namespace berth::plugins
