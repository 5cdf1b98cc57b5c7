#include "security/remains.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

namespace berth::security_test {

namespace {

std::string text_of(const std::string& path) {
  constexpr std::size_t bytes_max = std::size_t{1} << 20;
  return read_file(path, bytes_max).value_or("");  // an ended process has nothing to read
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0) found.push_back(pid);
  }
  return found;
}

bool is_in(const std::string& one, const std::vector<std::string>& many) {
  return std::ranges::find(many, one) != many.end();
}

std::vector<std::string> namespaces_of(pid_t pid) {
  std::vector<std::string> found;
  for (const char* kind : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
    std::error_code failed;
    const auto link =
        std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/" + kind, failed);
    if (!failed) found.push_back(link.string());
  }
  return found;
}

// The folder of a /proc/PID/cgroup line, "ID:CONTROLLERS:PATH"; hybrid hierarchies too.
std::vector<std::string> folders_of(const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (second == std::string::npos) return {};
  std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string path = line.substr(second + 1);
  if (path == "/") return {};
  if (controllers.empty()) return {"/sys/fs/cgroup" + path, "/sys/fs/cgroup/unified" + path};
  if (controllers.starts_with("name=")) controllers.erase(0, 5);
  return {"/sys/fs/cgroup/" + controllers + path};
}

}  // namespace

Remains::Remains(pid_t init) {
  const std::vector<std::string> own = namespaces_of(::getpid());
  for (const std::string& link : namespaces_of(init)) {
    if (is_in(link, own)) continue;
    namespaces_.push_back(link);
    const std::string kind = link.substr(0, link.find(':'));
    const std::string path = "/proc/" + std::to_string(init) + "/ns/" + kind;
    held_.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  std::istringstream groups{text_of("/proc/" + std::to_string(init) + "/cgroup")};
  const std::string ours = text_of("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (ours.contains(line + "\n")) continue;
    std::ranges::copy(folders_of(line), std::back_inserter(cgroups_));
  }
}

std::string Remains::still_there() const {
  std::string found;
  for (const std::string& folder : cgroups_) {
    if (::access(folder.c_str(), F_OK) == 0) found += "cgroup " + folder + "\n";
  }
  for (const pid_t pid : all_processes()) {
    for (const std::string& link : namespaces_of(pid)) {
      if (!is_in(link, namespaces_)) continue;
      found += "process " + std::to_string(pid) + " in " + link + "\n";
    }
  }
  return found;
}

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    if (pid == ::getpid()) continue;
    if (text_of("/proc/" + std::to_string(pid) + "/cmdline").contains(text)) found.push_back(pid);
  }
  return found;
}

std::string mounts() {
  return text_of("/proc/self/mountinfo");
}

}  // namespace berth::security_test
