#include "snapshots/git/git_program.hpp"

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/text.hpp"
#include "snapshots/git/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

namespace berth::snapshots {
namespace {

using Moment = std::chrono::steady_clock::time_point;

constexpr std::size_t errors_bytes_max = 16 << 10;
constexpr std::size_t message_bytes_max = 300;

// What no repository, no user and no machine may decide for us.
constexpr std::array settings = {
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    // Larger objects are streamed instead of held in memory.
    "core.bigFileThreshold=16m",
    "core.fsync=committed",
    "core.packedGitWindowSize=64m",
    "core.packedGitLimit=1g",
    "credential.helper=",
    "protocol.allow=never",
    "transfer.fsckObjects=true",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.threads=1",
    "diff.external=",
};

std::vector<std::string> words_of(const std::string& program, const GitCall& call) {
  std::vector<std::string> words{program, "--no-pager"};
  for (const char* setting : settings) {
    words.emplace_back("-c");
    words.emplace_back(setting);
  }
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return words;
}

std::vector<std::string> environment_of(const std::string& git_folder, const GitCall& call) {
  std::vector<std::string> environment{
      "PATH=/usr/bin:/bin",    "HOME=/nonexistent",      "LC_ALL=C",
      "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",    "GIT_CONFIG_GLOBAL=/dev/null",
      "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false",
      "GIT_EDITOR=/bin/false", "GIT_OPTIONAL_LOCKS=0",   "GIT_NO_REPLACE_OBJECTS=1",
      "GIT_ALLOW_PROTOCOL=",   "GIT_ADVICE=0",
  };
  environment.push_back("GIT_DIR=" + (git_folder.empty() ? "/nonexistent" : git_folder));
  for (const auto& [name, value] : call.variables) environment.push_back(name + "=" + value);
  return environment;
}

std::string shown_call(const GitCall& call) {
  return "git " + (call.arguments.empty() ? std::string{} : call.arguments.front());
}

void limit(pid_t child, const GitLimits& limits) {
  // The program has not been given a byte of input yet.
  const rlimit memory{limits.memory_bytes_max, limits.memory_bytes_max};
  ::prlimit(child, RLIMIT_AS, &memory, nullptr);
  const rlimit file{limits.file_bytes_max, limits.file_bytes_max};
  ::prlimit(child, RLIMIT_FSIZE, &file, nullptr);
  const rlimit core{0, 0};
  ::prlimit(child, RLIMIT_CORE, &core, nullptr);
}

// Moves bytes between a git that runs and its caller.
class Conversation {
 public:
  Conversation(const GitCall& call, ChildProcess child)
      : call_(call),
        child_(std::move(child)),
        end_(std::chrono::steady_clock::now() + call.limits.time_max) {}

  Result<GitEnd> hold() {
    ::fcntl(child_.input.get(), F_SETFL, O_NONBLOCK);
    if (!call_.input) child_.input = {};
    while (child_.output || child_.errors) BERTH_DO(step());
    child_.input = {};
    BERTH_DO(wait_for_end());
    const int status = child_.collect();
    if (input_error_) return std::unexpected(*std::move(input_error_));
    return judge(status);
  }

 private:
  Result<> step() {
    std::array<pollfd, 3> watched{{{child_.output.get(), POLLIN, 0},
                                   {child_.errors.get(), POLLIN, 0},
                                   {child_.input.get(), POLLOUT, 0}}};
    BERTH_DO(wait(watched.data(), watched.size()));
    if (watched[0].revents != 0) BERTH_DO(take_output());
    if (watched[1].revents != 0) BERTH_DO(take_errors());
    if (watched[2].revents != 0) give_input();
    return {};
  }

  Result<> wait(pollfd* watched, nfds_t count) {
    while (true) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        return fail(Errc::timed_out, shown_call(call_) + ": did not end within " +
                                         std::to_string(call_.limits.time_max.count()) + " ms");
      }
      const int ready =
          ::poll(watched, count, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return io_failure("wait for", shown_call(call_), errno);
    }
  }

  Result<> wait_for_end() {
    pollfd ended{child_.ended(), POLLIN, 0};
    return wait(&ended, 1);
  }

  Result<> take_output() {
    const ssize_t size = ::read(child_.output.get(), buffer_.data(), buffer_.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (size < 0) return io_failure("read from", shown_call(call_), errno);
    if (size == 0) {
      child_.output = {};
      return {};
    }
    output_bytes_ += static_cast<std::uint64_t>(size);
    if (output_bytes_ > call_.limits.output_bytes_max) {
      return fail(Errc::git_failed, shown_call(call_) + ": wrote more than " +
                                        std::to_string(call_.limits.output_bytes_max) + " bytes");
    }
    if (!call_.output) return {};
    return call_.output({buffer_.data(), static_cast<std::size_t>(size)});
  }

  Result<> take_errors() {
    std::array<char, 4096> piece{};
    const ssize_t size = ::read(child_.errors.get(), piece.data(), piece.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (size <= 0) {
      child_.errors = {};
      return {};
    }
    const std::size_t room = errors_bytes_max - errors_.size();
    errors_.append(piece.data(), std::min(room, static_cast<std::size_t>(size)));
    return {};
  }

  // A git that ends without reading all of its input has its reasons, which its status shows.
  void give_input() {
    if (rest_.empty()) {
      Result<std::string_view> next = call_.input();
      if (!next) input_error_ = std::move(next).error();
      if (!next || next->empty()) {
        child_.input = {};
        return;
      }
      rest_ = *next;
    }
    const ssize_t sent =
        ::send(child_.input.get(), rest_.data(), rest_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      rest_.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      child_.input = {};
    }
  }

  Result<GitEnd> judge(int status) const {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (std::ranges::find(call_.accepted, code) != call_.accepted.end()) {
      return GitEnd{.status = code, .errors = errors_};
    }
    const std::string how = WIFSIGNALED(status)
                                ? "was ended by signal " + std::to_string(WTERMSIG(status))
                                : "failed with status " + std::to_string(code);
    const std::string_view first = std::string_view{errors_}.substr(0, errors_.find('\n'));
    return fail(
        Errc::git_failed,
        shown_call(call_) + ": " + how +
            (first.empty() ? std::string{} : ": " + escaped(clipped(first, message_bytes_max))));
  }

  const GitCall& call_;
  ChildProcess child_;
  Moment end_;
  std::string_view rest_ = {};
  std::string errors_ = {};
  std::uint64_t output_bytes_ = 0;
  std::optional<Error> input_error_ = {};
  std::vector<char> buffer_ = std::vector<char>(256 << 10);
};

}  // namespace

Result<GitEnd> GitProgram::run(const std::string& git_folder, const GitCall& call) const {
  Result<ChildProcess> child =
      ChildProcess::start(words_of(program_, call), environment_of(git_folder, call));
  if (!child) {
    return fail(Errc::git_unavailable, child.error().message,
                "install git 2.39 or newer as " + program_);
  }
  limit(child->id(), call.limits);
  return Conversation{call, *std::move(child)}.hold();
}

Result<std::string> GitProgram::output(const std::string& git_folder, GitCall call,
                                       std::size_t bytes_max) const {
  std::string text;
  call.limits.output_bytes_max = bytes_max;
  call.output = [&text](std::string_view piece) {
    text += piece;
    return Result<>{};
  };
  BERTH_DO(run(git_folder, call));
  return text;
}

Result<> GitProgram::check_version() const {
  BERTH_TRY(const std::string text, output({}, {.arguments = {"version"}}));
  constexpr std::string_view prefix = "git version ";
  constexpr int minor_min = 39;
  int major = 0;
  int minor = 0;
  if (text.starts_with(prefix)) {
    const char* const end = text.data() + text.size();
    const auto [dot, error] = std::from_chars(text.data() + prefix.size(), end, major);
    if (error == std::errc{} && dot != end) std::from_chars(dot + 1, end, minor);
  }
  if (major > 2 || (major == 2 && minor >= minor_min)) return {};
  return fail(Errc::git_unavailable, program_ + ": is " + in_quotes(trimmed(text)),
              "install git 2.39 or newer");
}

}  // namespace berth::snapshots
