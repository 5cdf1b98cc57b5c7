#include "base/owned.hpp"
#include "base/text.hpp"
#include "cli/doctor/check.hpp"
#include "cli/doctor/facts.hpp"
#include "cli/keeper_program.hpp"
#include "cli/version.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace berth::cli::doctor {
namespace {

constexpr std::chrono::seconds patience{5};
constexpr std::size_t output_max = 4096;

// Reads a program's first output, until it ends, printed enough or took too long.
std::string read_some(int fd) {
  std::string text;
  std::array<char, 512> chunk{};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (text.size() < output_max) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text.substr(0, text.find('\n'));
}

// The first line of `program flag`, from either output; nothing when there is no such program.
std::optional<std::string> first_line(const char* program, const char* flag) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Fd reading{ends[0]};
  Fd writing{ends[1]};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDERR_FILENO);
  std::string name = program;
  std::string argument = flag;
  std::array<char*, 3> argv = {name.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program, &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return std::nullopt;
  writing = Fd{};  // or the read would never see the end
  std::string line = read_some(reading.get());
  ::kill(child, SIGKILL);  // we have its output; most have ended by now
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return line;
}

struct Tool {
  const char* program;
  const char* flag;
  Version oldest;
  const char* used_for;
  const char* package;
};

Finding check_tool(const Tool& tool) {
  const std::string install = std::string{"apt-get install "} + tool.package;
  const auto line = first_line(tool.program, tool.flag);
  if (!line) {
    return {tool.program, Verdict::warn, std::string{"not found; needed for "} + tool.used_for,
            install};
  }
  const auto version = version_in(*line);
  if (!version) return {tool.program, Verdict::warn, "does not say its version: " + *line, install};
  if (*version < tool.oldest) {
    return {tool.program, Verdict::warn,
            *line + " is older than " + std::to_string(tool.oldest.major) + "." +
                std::to_string(tool.oldest.minor) + ", which is needed for " + tool.used_for,
            install};
  }
  return {tool.program, Verdict::ok, *line};
}

}  // namespace

Finding check_keeper(const Machine& machine) {
  const Result<std::string> program = keeper_program(machine.settings);
  if (!program) {
    return {"keeper", Verdict::fail, program.error().message, program.error().remedy};
  }
  const auto line = first_line(program->c_str(), "version");
  const bool fits = line && line->contains(version());
  if (fits) return {"keeper", Verdict::ok, *program};
  return {"keeper", Verdict::fail,
          *program + " says " + in_quotes(line.value_or("nothing")) + ", not version " +
              std::string{version()},
          "install berth and berth-keeper of the same build"};
}

Finding check_ssh() {
  return check_tool({"ssh", "-V", {8, 0}, "environments with the driver ssh", "openssh-client"});
}

Finding check_git() {
  return check_tool({"git", "--version", {2, 25}, "workspaces that are repositories", "git"});
}

Finding check_node() {
  return check_tool(
      {"node", "--version", {18, 0}, "provider plugins written in JavaScript", "nodejs"});
}

}  // namespace berth::cli::doctor
