#include "security/hostile/tools.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace berth::hostile {

namespace {

constexpr std::size_t contents_bytes_max = std::size_t{1} << 20;

std::string name_of_errno(int error) {
  const char* name = ::strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

}  // namespace

Verdict denied() {
  return denied(errno);
}

Verdict denied(int error) {
  return {.outcome = Outcome::denied, .text = name_of_errno(error)};
}

Verdict limited(std::string how_much) {
  return {.outcome = Outcome::limited, .text = std::move(how_much)};
}

Verdict open_to(std::string deed) {
  return {.outcome = Outcome::open, .text = std::move(deed)};
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Scratch::Scratch() {
  for (const char* place : {"/tmp", "/var/tmp", "/dev/shm", "."}) {
    std::string name = std::string{place} + "/hostile-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) continue;
    path_ = name;
    return;
  }
}

Scratch::~Scratch() {
  if (path_.empty()) return;
  const int saved = errno;
  if (DIR* folder = ::opendir(path_.c_str())) {
    while (const dirent* entry = ::readdir(folder)) {
      if (::unlinkat(::dirfd(folder), entry->d_name, 0) != 0) {
        ::unlinkat(::dirfd(folder), entry->d_name, AT_REMOVEDIR);
      }
    }
    ::closedir(folder);
  }
  ::rmdir(path_.c_str());
  errno = saved;
}

std::string contents_of(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return {};
  std::string contents(contents_bytes_max, '\0');
  std::size_t filled = 0;
  errno = 0;
  while (filled < contents.size()) {
    const ssize_t got = ::read(file.get(), contents.data() + filled, contents.size() - filled);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  contents.resize(filled);
  return contents;
}

Verdict reading(const std::string& path, const std::string& marker) {
  const std::string contents = contents_of(path);
  if (contents.empty()) return denied(errno != 0 ? errno : ENODATA);
  // Another file with that name, such as one in the sandbox's own folder.
  if (!contents.contains(marker)) return denied(ENOENT);
  return open_to("read " + path);
}

bool opens_for_writing(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return false;
  struct stat found = {};
  ::fstat(file.get(), &found);
  // A mask is the null device, which accepts everything.
  const bool is_mask = S_ISCHR(found.st_mode) && found.st_rdev == makedev(1, 3);
  if (is_mask) errno = EACCES;
  return !is_mask;
}

std::vector<pid_t> visible_processes() {
  std::vector<pid_t> found;
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) return found;
  while (const dirent* entry = ::readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && pid != ::getpid()) found.push_back(pid);
  }
  ::closedir(processes);
  return found;
}

Verdict in_child(const std::function<Verdict()>& attempt) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return denied();
  const pid_t child = ::fork();
  if (child < 0) return denied();
  if (child == 0) {
    const Verdict verdict = attempt();
    const std::string said =
        static_cast<char>('0' + static_cast<int>(verdict.outcome)) + verdict.text;
    const ssize_t written = ::write(ends[1], said.data(), said.size());
    ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  const Descriptor answer{ends[0]};
  std::string said(4096, '\0');
  const ssize_t got = ::read(answer.get(), said.data(), said.size());
  int status = 0;
  ::waitpid(child, &status, 0);
  if (got > 0) {
    return {.outcome = static_cast<Outcome>(said[0] - '0'),
            .text = said.substr(1, static_cast<std::size_t>(got) - 1)};
  }
  // The kernel ended the child: this process ends in the same way, so that it is visible outside.
  if (WIFSIGNALED(status)) ::raise(WTERMSIG(status));
  return denied(ECHILD);
}

std::uint64_t namespace_of(std::string_view kind) {
  struct stat found = {};
  const std::string path = "/proc/self/ns/" + std::string{kind};
  return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

}  // namespace berth::hostile
