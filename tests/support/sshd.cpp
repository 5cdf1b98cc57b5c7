#include "support/sshd.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/owned.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <map>
#include <utility>

namespace berth::tests {
namespace {

constexpr const char* sshd_program = "/usr/sbin/sshd";
constexpr const char* keygen_program = "/usr/bin/ssh-keygen";
// Where sshd confines itself; the package creates it only when the service starts.
constexpr const char* separation_folder = "/run/sshd";

pid_t spawn(std::vector<std::string> words, std::vector<std::string> environment) {
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> out;
    out.reserve(texts.size() + 1);
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  };
  posix_spawn_file_actions_t files{};
  ::posix_spawn_file_actions_init(&files);
  for (const int fd : {0, 1, 2}) {
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, words[0].c_str(), &files, nullptr, pointers(words).data(),
                                  pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  BERTH_ASSERT(error == 0);
  return pid;
}

void run(std::vector<std::string> words) {
  BERTH_ASSERT((Spawned{std::move(words), {}}.wait() == 0));
}

std::string own_user() {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  ::getpwuid_r(::getuid(), &entry, text.data(), text.size(), &found);
  BERTH_ASSERT(found != nullptr);
  return found->pw_name;
}

int free_port() {
  const Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  BERTH_ASSERT(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  for (const std::string& name : names_in("/proc").value_or(std::vector<std::string>{})) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ptr == name.data() + name.size() && pid > 0) pids.push_back(pid);
  }
  return pids;
}

pid_t parent_of_process(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat) return 0;
  const std::size_t end = stat->rfind(") ");
  if (end == stat->npos || end + 4 > stat->size()) return 0;
  pid_t parent = 0;
  std::from_chars(stat->data() + end + 4, stat->data() + stat->size(), parent);
  return parent;
}

}  // namespace

Spawned::Spawned(std::vector<std::string> words, std::vector<std::string> environment)
    : pid_(spawn(std::move(words), std::move(environment))) {}

Spawned::~Spawned() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

int Spawned::wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, 0), &status, 0);
  return status;
}

std::vector<pid_t> processes_below(pid_t root) {
  std::map<pid_t, pid_t> parents;
  for (const pid_t pid : all_processes()) parents[pid] = parent_of_process(pid);
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [pid, parent] : parents) {
      if (parent == found[i] && pid != root) found.push_back(pid);
    }
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    const auto line = read_file("/proc/" + std::to_string(pid) + "/cmdline", std::size_t{4} << 20);
    if (line && line->contains(text)) found.push_back(pid);
  }
  return found;
}

std::string PrivateSshd::missing() {
  for (const char* program : {sshd_program, keygen_program, "/usr/bin/ssh"}) {
    if (::access(program, X_OK) != 0) return std::string{program} + " is not installed";
  }
  return "";
}

PrivateSshd::PrivateSshd(const std::vector<std::string>& settings) : port_(free_port()) {
  user_ = own_user();
  if (::getuid() == 0) ::mkdir(separation_folder, 0755);
  for (const char* name : {"host_key", "other_host_key", "client_key", "strange_key"}) {
    run({keygen_program, "-q", "-t", "ed25519", "-N", "", "-f", folder_.file(name)});
  }
  run({keygen_program, "-q", "-t", "ed25519", "-N", "secret", "-f", folder_.file("protected_key")});
  BERTH_ASSERT(::mkdir(home().c_str(), 0700) == 0);
  std::string config = "ListenAddress 127.0.0.1\nPort " + std::to_string(port_) + "\nHostKey " +
                       folder_.file("host_key") + "\nAuthorizedKeysFile " +
                       folder_.file("client_key.pub") +
                       "\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
                       "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
                       "LoginGraceTime 20\nMaxStartups 100\nAllowUsers " +
                       user_ + "\nSetEnv HOME=" + home() + "\n";
  for (const std::string& setting : settings) config += setting + "\n";
  BERTH_ASSERT(create_file(folder_.file("config"), config, 0600).has_value());
  start();
}

PrivateSshd::~PrivateSshd() {
  kill_all();
}

void PrivateSshd::start() {
  pid_ = spawn({sshd_program, "-D", "-f", folder_.file("config"), "-E", folder_.file("log")}, {});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!answers()) {
    BERTH_ASSERT(std::chrono::steady_clock::now() < until);
    ::poll(nullptr, 0, 20);
  }
}

void PrivateSshd::kill_all() {
  if (pid_ == 0) return;
  std::vector<pid_t> pids = processes_below(pid_);
  pids.insert(pids.begin(), pid_);
  for (const pid_t pid : pids) {
    const auto name = read_file("/proc/" + std::to_string(pid) + "/comm", 256);
    if (name && name->starts_with("sshd")) ::kill(pid, SIGKILL);
  }
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

bool PrivateSshd::answers() const {
  const Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

std::string PrivateSshd::read(const std::string& name) const {
  return read_file(folder_.file(name), std::size_t{1} << 20).value_or("");
}

std::string PrivateSshd::private_key() const {
  return read("client_key");
}

std::string PrivateSshd::protected_key() const {
  return read("protected_key");
}

std::string PrivateSshd::strange_key() const {
  return read("strange_key");
}

std::string PrivateSshd::known_hosts() const {
  return "[127.0.0.1]:" + std::to_string(port_) + " " + read("host_key.pub");
}

std::string PrivateSshd::wrong_known_hosts() const {
  return "[127.0.0.1]:" + std::to_string(port_) + " " + read("other_host_key.pub");
}

std::string PrivateSshd::log() const {
  return read("log");
}

}  // namespace berth::tests
