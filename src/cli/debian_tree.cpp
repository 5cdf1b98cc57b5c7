#include "cli/debian_tree.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "plugins/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ranges>

extern char** environ;

namespace berth::cli {
namespace {

constexpr auto program = "mmdebstrap";
constexpr auto time_limit = std::chrono::hours{2};
constexpr std::size_t system_file_bytes_max = 1 << 20;
constexpr std::size_t complaint_bytes_max = 1000;

// What mmdebstrap copies from this machine, which does not belong in an image. Debian itself does
// not create /etc/hosts, without which there is no localhost.
constexpr auto tidy_hook = R"(rm -f "$1/etc/hostname" "$1/etc/resolv.conf")";
constexpr auto hosts_hook =
    R"(test -e "$1/etc/hosts" || )"
    R"(printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$1/etc/hosts")";
constexpr auto hosts_mode_hook = R"(chmod 644 "$1/etc/hosts")";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto part : std::views::split(line, ' ')) {
    if (!part.empty()) words.emplace_back(part.begin(), part.end());
  }
  return words;
}

// Whether an apt sources file, in either format, offers the suite.
bool offers(const std::string& file, std::string_view suite) {
  const auto text = read_file(file, system_file_bytes_max);
  if (!text) return false;
  for (const auto part : std::views::split(*text, '\n')) {
    const std::string_view line{part.begin(), part.end()};
    if (line.starts_with('#')) continue;
    const auto words = words_of(line);
    if (std::ranges::find(words, suite) != words.end()) return true;
  }
  return false;
}

// The files in /etc/apt that offer any part of the suite: the suite itself, -updates, -security.
Result<std::vector<std::string>> sources_for(const std::string& suite) {
  std::vector<std::string> candidates{"/etc/apt/sources.list"};
  for (const std::string& name :
       names_in("/etc/apt/sources.list.d").value_or(std::vector<std::string>{})) {
    if (name.ends_with(".list") || name.ends_with(".sources")) {
      candidates.push_back("/etc/apt/sources.list.d/" + name);
    }
  }
  std::vector<std::string> files;
  for (const std::string& file : candidates) {
    if (offers(file, suite)) files.push_back(file);
  }
  if (!files.empty()) return files;
  return fail(Errc::config_invalid,
              "no apt source of this machine offers the suite " + in_quotes(suite),
              "add one to /etc/apt/sources.list.d, or choose another suite with --suite");
}

Result<std::string> suite_of_this_machine() {
  constexpr std::string_view key = "VERSION_CODENAME=";
  const auto text = read_file("/etc/os-release", system_file_bytes_max);
  if (text) {
    for (const auto part : std::views::split(*text, '\n')) {
      const std::string_view line{part.begin(), part.end()};
      if (line.starts_with(key)) return std::string{line.substr(key.size())};
    }
  }
  return fail(Errc::config_invalid, "this machine does not say which Debian it is",
              "name the suite: --suite bookworm");
}

// apt accepts options where packages are expected, so a package name must look like one.
Result<> check_word(std::string_view what, std::string_view word) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
           c == ':';
  };
  if (!word.empty() && word.front() != '-' && std::ranges::all_of(word, fits)) return {};
  return fail(Errc::bad_request, in_quotes(word) + " is not a " + std::string{what});
}

Result<std::vector<std::string>> command_for(const DebianTree& wanted) {
  std::string suite = wanted.suite;
  if (suite.empty()) {
    BERTH_TRY(suite, suite_of_this_machine());
  }
  BERTH_DO(check_word("suite", suite));
  std::vector<std::string> command{program, "--variant=minbase", "--format=tar"};
  for (const std::string hook : {tidy_hook, hosts_hook, hosts_mode_hook}) {
    command.push_back("--customize-hook=" + hook);
  }
  for (const std::string& package : wanted.packages) {
    BERTH_DO(check_word("package", package));
    command.push_back("--include=" + package);
  }
  BERTH_TRY(const std::vector<std::string> sources, sources_for(suite));
  command.push_back(suite);
  command.emplace_back("-");
  command.insert(command.end(), sources.begin(), sources.end());
  return command;
}

// Whether a subordinate id file (/etc/subuid) has ids for the user.
bool has_ids_for(const std::string& user, const std::string& file) {
  const std::string text = read_file(file, system_file_bytes_max).value_or("");
  return text.starts_with(user + ":") || text.contains("\n" + user + ":");
}

// An ordinary user's tree has many owners. That requires a user namespace with as many ids, or
// fakechroot. mmdebstrap itself only reports that it found no way.
Result<> check_ways_of_ordinary_user() {
  const char* set = std::getenv("PATH");
  const std::string path = set != nullptr ? set : "/usr/bin:/bin";
  const auto is_there = [&](const char* name) {
    return plugins::find_program(path, name).has_value();
  };
  const bool is_checked = ::geteuid() != 0 && is_there(program) && !is_there("fakechroot");
  if (!is_checked) return {};
  for (const char* tool : {"newuidmap", "newgidmap"}) {
    if (is_there(tool)) continue;
    return fail(
        Errc::command_not_found,
        std::string{tool} + " is not installed, and mmdebstrap needs it for an ordinary user",
        "install it: apt-get install uidmap; or run this as root");
  }
  const passwd* const known = ::getpwuid(::getuid());
  const std::string user = known != nullptr ? known->pw_name : std::to_string(::getuid());
  for (const char* file : {"/etc/subuid", "/etc/subgid"}) {
    if (has_ids_for(user, file)) continue;
    return fail(Errc::config_invalid,
                std::string{file} + " has no ids for " + in_quotes(user) +
                    ", and mmdebstrap needs them for an ordinary user",
                "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " + user +
                    "; or run this as root");
  }
  return {};
}

Result<Fd> nameless_file(const std::string& folder) {
  std::string path = folder + "/debian-XXXXXX";
  Fd file{::mkostemp(path.data(), O_CLOEXEC)};
  if (!file) return io_failure("make a file in", folder, errno);
  ::unlink(path.c_str());
  return file;
}

Result<pid_t> start_program(const std::vector<std::string>& command, int out, int err) {
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int status = ::posix_spawnp(&pid, program, &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (status == 0) return pid;
  if (status == ENOENT) {
    return fail(Errc::command_not_found, "mmdebstrap is not installed on this machine",
                "install it: apt-get install mmdebstrap");
  }
  return io_failure("start", program, status);
}

// The exit status of the process; 'timed_out' when it does not end.
Result<int> wait_for(pid_t pid) {
  const Fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  const auto deadline = std::chrono::steady_clock::now() + time_limit;
  int ready = -1;
  do {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    ready = ::poll(&ended, 1, static_cast<int>(std::max(left.count(), std::int64_t{0})));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) ::kill(pid, SIGTERM);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (ready == 0) return fail(Errc::timed_out, "mmdebstrap did not end within two hours");
  return status;
}

// The last lines of its output.
std::string tail_of(int said) {
  ::lseek(said, 0, SEEK_SET);
  const std::string text = read_fd(said, system_file_bytes_max, program).value_or("");
  return as_utf8(text.substr(text.size() - std::min(text.size(), complaint_bytes_max)));
}

}  // namespace

Result<Fd> make_debian_tree(const DebianTree& wanted, const std::string& folder,
                            const Console& console) {
  BERTH_TRY(const std::vector<std::string> command, command_for(wanted));
  BERTH_DO(check_ways_of_ordinary_user());
  BERTH_TRY(Fd tar, nameless_file(folder));
  BERTH_TRY(const Fd said, nameless_file(folder));
  const bool shown = console.err_is_terminal && console.err_fd >= 0;
  BERTH_TRY(const pid_t pid,
            start_program(command, tar.get(), shown ? console.err_fd : said.get()));
  BERTH_TRY(const int status, wait_for(pid));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Errc::command_failed,
                "mmdebstrap failed" + (shown ? std::string{} : ": " + tail_of(said.get())),
                "see whether 'apt-get update' works on this machine");
  }
  ::lseek(tar.get(), 0, SEEK_SET);
  return tar;
}

}  // namespace berth::cli
