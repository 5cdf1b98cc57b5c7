#include "plugin_kit/worker_process.hpp"

#include "base/files.hpp"

#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace berth::plugin_kit {
namespace {

using Moment = std::chrono::steady_clock::time_point;

constexpr std::size_t read_bytes = std::size_t{256} << 10;
constexpr std::size_t line_bytes_max = std::size_t{256} << 20;
constexpr std::size_t stderr_bytes_max = 8000;
constexpr std::size_t kept_messages_max = 100'000;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_failure("make", "a pipe", errno);
  return Pipe{.read_end = Fd{ends[0]}, .write_end = Fd{ends[1]}};
}

// The arguments of posix_spawn, with their memory.
struct SpawnPlan {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};

  SpawnPlan(const std::string& folder, int in, int out, int err) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    ::posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::string text_member(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  return found != nullptr && found->is_string() ? std::string{found->get_string()} : std::string{};
}

}  // namespace

Result<WorkerProcess> WorkerProcess::spawn(const Start& start) {
  BERTH_TRY(Pipe in, make_pipe());
  BERTH_TRY(Pipe out, make_pipe());
  BERTH_TRY(Pipe err, make_pipe());
  std::vector<std::string> argv = start.argv;
  std::vector<std::string> environment;
  for (const auto& [name, value] : start.environment) {
    environment.push_back(std::string{name}.append("=").append(value));
  }
  const SpawnPlan plan{start.folder, in.read_end.get(), out.write_end.get(), err.write_end.get()};
  pid_t pid = 0;
  const int error_number = ::posix_spawn(&pid, argv.at(0).c_str(), &plan.files, &plan.attributes,
                                         pointers_to(argv).data(), pointers_to(environment).data());
  if (error_number != 0) return io_failure("start", start.argv[0], error_number);
  for (const Fd* fd : {&in.write_end, &out.read_end, &err.read_end}) {
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  return WorkerProcess{pid, std::move(in.write_end), std::move(out.read_end),
                       std::move(err.read_end)};
}

WorkerProcess::WorkerProcess(pid_t pid, Fd in, Fd out, Fd err)
    : pid_(pid), in_(std::move(in)), out_(std::move(out)), err_(std::move(err)) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : notifications(std::move(other.notifications)),
      requests(std::move(other.requests)),
      stray_answers(std::move(other.stray_answers)),
      garbage(std::move(other.garbage)),
      stderr_tail(std::move(other.stderr_tail)),
      stdout_ended(other.stdout_ended),
      pid_(std::exchange(other.pid_, 0)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      host_(std::move(other.host_)),
      outgoing_(std::move(other.outgoing_)),
      sent_(other.sent_),
      incoming_(std::move(other.incoming_)),
      last_id_(other.last_id_),
      answers_(std::move(other.answers_)),
      answered_(std::move(other.answered_)),
      status_(other.status_) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ == 0 || status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void WorkerProcess::send_bytes(std::string_view bytes) {
  outgoing_ += bytes;
  write_some();
}

void WorkerProcess::send(const bj::object& message) {
  std::string line = bj::serialize(message);
  for (const auto& [raw, escaped] :
       {std::pair{"\xE2\x80\xA8", "\\u2028"}, std::pair{"\xE2\x80\xA9", "\\u2029"}}) {
    for (std::size_t at = line.find(raw); at != std::string::npos; at = line.find(raw, at)) {
      line.replace(at, 3, escaped);
    }
  }
  send_bytes(line + "\n");
}

std::int64_t WorkerProcess::call(std::string_view method, bj::value params,
                                 const std::string& invocation) {
  const std::string company =
      params.is_object() ? text_member(params.get_object(), "companyId") : std::string{};
  bj::object message{
      {"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", std::move(params)}};
  if (!invocation.empty()) {
    message["paperclipInvocation"] = {{"id", invocation},
                                      {"scope", bj::object{{"companyId", company}}}};
  }
  send(message);
  return last_id_;
}

Result<bj::object> WorkerProcess::answer_to(const bj::value& id, Limit limit) {
  const std::string key = bj::serialize(id);
  const bool came = read_until([&] { return answers_.contains(key) || stdout_ended; }, limit);
  if (const auto found = answers_.find(key); found != answers_.end()) {
    bj::object answer = std::move(found->second);
    answers_.erase(found);
    answered_.insert(key);
    return answer;
  }
  if (!came) {
    return fail(Errc::timed_out,
                "there was no answer within " + std::to_string(limit.count()) + " ms");
  }
  return fail(Errc::plugin_unavailable, "the worker closed its stdout without an answer");
}

Result<bj::value> WorkerProcess::ask(std::string_view method, bj::value params, Limit limit,
                                     const std::string& invocation) {
  const std::int64_t id = call(method, std::move(params), invocation);
  BERTH_TRY(bj::object answer, answer_to(id, limit));
  const bj::value* refused = answer.if_contains("error");
  if (refused == nullptr) return answer["result"];
  if (!refused->is_object()) {
    return fail(Errc::plugin_protocol, "the error of " + std::string{method} + " is not an object");
  }
  const bj::value* code = refused->get_object().if_contains("code");
  return fail(Errc::plugin_call_failed,
              std::string{method} + " was refused (" +
                  (code != nullptr ? bj::serialize(*code) : std::string{"without a code"}) +
                  "): " + text_member(refused->get_object(), "message"));
}

bool WorkerProcess::read_until(const std::function<bool()>& is_so, Limit limit) {
  const Moment until = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    const auto left = std::chrono::duration_cast<Limit>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (stdout_ended && !err_) return is_so();
    turn(left);
  }
  return true;
}

void WorkerProcess::turn(Limit limit) {
  std::array<pollfd, 3> fds{pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0},
                            pollfd{outgoing_.empty() ? -1 : in_.get(), POLLOUT, 0}};
  const auto wait = std::min<std::int64_t>(limit.count() + 1, 1000);
  if (::poll(fds.data(), fds.size(), static_cast<int>(wait)) <= 0) return;
  if (fds[2].revents != 0) write_some();
  if (fds[0].revents != 0) read_stdout();
  if (fds[1].revents != 0) read_stderr();
}

void WorkerProcess::write_some() {
  while (sent_ < outgoing_.size() && in_) {
    const ssize_t wrote = ::write(in_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    // After an error the worker no longer reads.
    sent_ = wrote < 0 ? outgoing_.size() : sent_ + static_cast<std::size_t>(wrote);
  }
  outgoing_.clear();
  sent_ = 0;
}

void WorkerProcess::read_stdout() {
  std::string piece(read_bytes, '\0');
  const ssize_t got = ::read(out_.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    stdout_ended = true;
    out_ = Fd{};
    return;
  }
  const std::size_t scanned = incoming_.size();
  incoming_.append(piece, 0, static_cast<std::size_t>(got));
  std::size_t start = 0;
  for (std::size_t end = incoming_.find('\n', scanned); end != std::string::npos;
       end = incoming_.find('\n', start)) {
    take(incoming_.substr(start, end - start));
    start = end + 1;
  }
  incoming_.erase(0, start);
  if (incoming_.size() > line_bytes_max) kill(SIGKILL);
}

void WorkerProcess::read_stderr() {
  std::string piece(read_bytes, '\0');
  const ssize_t got = ::read(err_.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    err_ = Fd{};
    return;
  }
  stderr_tail.append(piece, 0, static_cast<std::size_t>(got));
  if (stderr_tail.size() > stderr_bytes_max) {
    stderr_tail.erase(0, stderr_tail.size() - stderr_bytes_max);
  }
}

void WorkerProcess::take(std::string line) {
  const auto keep = [](auto& list, auto item) {
    if (list.size() < kept_messages_max) list.push_back(std::move(item));
  };
  auto parsed = parse_json(line);
  if (!parsed || !parsed->is_object()) return keep(garbage, std::move(line));
  bj::object message = std::move(parsed->get_object());
  const bj::value* id = message.if_contains("id");
  if (id != nullptr && (message.contains("result") || message.contains("error"))) {
    const std::string key = bj::serialize(*id);
    if (id->is_null() || answers_.contains(key) || answered_.contains(key)) {
      return keep(stray_answers, std::move(message));
    }
    answers_.emplace(key, std::move(message));
  } else if (id != nullptr) {
    keep(requests, message);
    const auto answer = host_ ? host_(message) : std::nullopt;
    if (!answer) return;
    bj::object reply{{"jsonrpc", "2.0"}, {"id", *id}};
    for (const auto& [name, value] : *answer) reply[name] = value;
    send(reply);
  } else {
    keep(notifications, std::move(message));
  }
}

void WorkerProcess::close_stdin() {
  in_ = Fd{};
}

void WorkerProcess::kill(int signal) const {
  if (!status_) ::kill(pid_, signal);
}

std::optional<int> WorkerProcess::wait_exit(Limit limit) {
  const auto has_ended = [this] {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  };
  const Moment until = std::chrono::steady_clock::now() + limit;
  while (!has_ended() && std::chrono::steady_clock::now() < until) {
    // The pipes do not show the exit, because a child may hold them.
    turn(Limit{10});
    if (!out_ && !err_) ::poll(nullptr, 0, 5);
  }
  return status_;
}

}  // namespace berth::plugin_kit
