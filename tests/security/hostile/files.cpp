#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

// Ways to a host file. Each counts as open only when the file's content was read.
namespace berth::hostile {

namespace {

Verdict directly(const Bait& bait) {
  return reading(bait.file, bait.marker);
}

Verdict through_init(const Bait& bait) {
  return reading("/proc/1/root" + bait.file, bait.marker);
}

// The last process's result, unless one succeeded.
Verdict through_each_process(const Bait& bait, const std::string& link, const std::string& rest) {
  Verdict last = denied(ESRCH);
  for (const pid_t pid : visible_processes()) {
    if (pid == 1) continue;
    last = reading("/proc/" + std::to_string(pid) + link + rest, bait.marker);
    if (last.outcome == Outcome::open) return last;
  }
  return last;
}

Verdict through_roots(const Bait& bait) {
  return through_each_process(bait, "/root", bait.file);
}

// The host process's current folder is that of the file.
Verdict through_folders(const Bait& bait) {
  return through_each_process(bait, "/cwd", bait.file.substr(bait.file.rfind('/')));
}

// A root below the current folder does not contain it: from there, .. leads past the old root.
Verdict chroot_twice(const Bait& bait) {
  return in_child([&] {
    const Scratch scratch;
    const int outside = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (::chroot(scratch.path().c_str()) != 0) return denied();
    if (::fchdir(outside) != 0) return denied();
    for (int i = 0; i < 64; ++i) {
      if (::chdir("..") != 0) return denied();
    }
    const bool is_out = ::chroot(".") == 0;
    return is_out ? reading(bait.file, bait.marker) : denied();
  });
}

bool fill_handle(const std::string& text, file_handle& handle) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  handle.handle_type = std::atoi(text.c_str());
  handle.handle_bytes = static_cast<unsigned>((text.size() - colon - 1) / 2);
  for (unsigned i = 0; i < handle.handle_bytes; ++i) {
    const char* at = text.c_str() + colon + 1 + 2 * i;
    std::from_chars(at, at + 2, handle.f_handle[i], 16);
  }
  return true;
}

// A file handle needs no path, only a mount of the same file system: a bound file is enough.
Verdict by_handle(const Bait& bait) {
  alignas(file_handle) char storage[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto& handle = *new (storage) file_handle{};
  if (!fill_handle(bait.handle, handle)) return denied(EINVAL);
  int error = 0;
  for (const char* place : {"/", "/usr", "/tmp", "/proc/self/exe"}) {
    const Descriptor mount{::open(place, O_RDONLY | O_CLOEXEC)};
    if (!mount) continue;
    const Descriptor file{::open_by_handle_at(mount.get(), &handle, O_RDONLY | O_CLOEXEC)};
    if (!file) {
      error = errno;
      continue;
    }
    char bytes[256] = {};
    const ssize_t got = ::read(file.get(), bytes, sizeof bytes - 1);
    if (got > 0 && std::strstr(bytes, bait.marker.c_str()) != nullptr) {
      return open_to(std::string{"read the host's file by its handle through "} + place);
    }
  }
  return denied(error);
}

Verdict write_usr(const Bait&) {
  const std::string path = "/usr/bin/hostile-" + std::to_string(::getpid());
  const Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!file) return denied();
  ::unlink(path.c_str());
  return open_to("made " + path);
}

// The program is bound from the host: a process that can write it runs code as the next user who
// starts it.
Verdict write_own_program(const Bait&) {
  char path[4096] = {};
  if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0) return denied();
  const Descriptor folder{::open(path, O_RDONLY | O_CLOEXEC)};
  // While it runs, opening it for writing fails everywhere as busy; changing its mode does not.
  struct stat found = {};
  if (::fstat(folder.get(), &found) != 0) return denied();
  if (::chmod(path, found.st_mode & 07777) != 0) return denied();
  return open_to("changed the mode of the bound program");
}

Verdict write_keeper(const Bait&) {
  if (opens_for_writing("/proc/1/exe")) return open_to("opened the keeper's program for writing");
  const int error = errno;
  const Descriptor program{::open("/proc/1/exe", O_RDONLY | O_CLOEXEC)};
  return program ? limited("read-only: " + denied(error).text) : denied(error);
}

constexpr Attempt attempts[] = {
    {"host_file_directly", directly},
    {"host_file_via_proc_1_root", through_init},
    {"host_file_via_proc_pid_root", through_roots},
    {"host_file_via_proc_pid_cwd", through_folders},
    {"chroot_twice", chroot_twice},
    {"open_by_handle_at", by_handle},
    {"write_usr", write_usr},
    {"write_bound_program", write_own_program},
    {"write_keeper_via_proc_1_exe", write_keeper},
};

}  // namespace

std::span<const Attempt> file_attempts() {
  return attempts;
}

}  // namespace berth::hostile
