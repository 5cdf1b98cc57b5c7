#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

// Taking more than one's share. Each takes at most twice what the sandbox was granted, releases it,
// and counts as open when it got all of that.
namespace berth::hostile {

namespace {

Verdict take_descriptors(const Bait& bait) {
  const std::uint64_t wanted = bait.files_max * 2;
  std::uint64_t taken = 0;
  // A process that may raise the hard limit has no limit.
  const rlimit more = {.rlim_cur = wanted + 16, .rlim_max = wanted + 16};
  ::setrlimit(RLIMIT_NOFILE, &more);
  while (taken < wanted && ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) >= 0) ++taken;
  const int error = errno;
  ::close_range(3, ~0U, 0);
  if (taken == wanted) return open_to("opened " + std::to_string(taken) + " files");
  return limited(std::to_string(taken) + " files, then " + denied(error).text);
}

// The caller defines what the children do; they end with this process at the latest.
Verdict take_processes(const Bait& bait, void (*live)()) {
  const std::uint64_t wanted = bait.processes_max * 2;
  std::vector<pid_t> children;
  int error = 0;
  while (children.size() < wanted) {
    const pid_t child = ::fork();
    if (child < 0) {
      error = errno;
      break;
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      live();
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  const std::string number = std::to_string(children.size());
  if (children.size() == wanted) return open_to("made " + number + " processes");
  return limited(number + " processes, then " + denied(error).text);
}

Verdict bomb(const Bait& bait) {
  return take_processes(bait, [] { ::pause(); });
}

Verdict flood_of_zombies(const Bait& bait) {
  return take_processes(bait, [] {});
}

Verdict fill_memory_of(std::uint64_t wanted) {
  constexpr std::uint64_t step = std::uint64_t{4} << 20;
  for (std::uint64_t taken = 0; taken < wanted; taken += step) {
    void* piece = ::mmap(nullptr, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) return limited(std::to_string(taken >> 20) + " MiB");
    std::memset(piece, 1, step);
  }
  return open_to("filled " + std::to_string(wanted >> 20) + " MiB of memory");
}

Verdict fill_memory(const Bait& bait) {
  return in_child([&] { return fill_memory_of(bait.memory_bytes_max * 2); });
}

Verdict write_until_full(int file, std::uint64_t wanted, const std::string& where) {
  const std::string piece(std::size_t{1} << 20, 'x');
  for (std::uint64_t written = 0; written < wanted;) {
    const ssize_t got = ::write(file, piece.data(), piece.size());
    if (got <= 0) return limited(std::to_string(written >> 20) + " MiB, then " + denied().text);
    written += static_cast<std::uint64_t>(got);
  }
  return open_to("filled " + std::to_string(wanted >> 20) + " MiB of " + where);
}

Verdict fill(const Bait& bait, const std::string& folder) {
  ::signal(SIGXFSZ, SIG_IGN);
  const std::string path = folder + "/hostile-fill-" + std::to_string(::getpid());
  const Descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!file) return denied();
  ::unlink(path.c_str());
  return in_child([&] { return write_until_full(file.get(), bait.disk_bytes_max * 2, folder); });
}

Verdict fill_tmp(const Bait& bait) {
  return fill(bait, "/tmp");
}

Verdict fill_shm(const Bait& bait) {
  return fill(bait, "/dev/shm");
}

// The first writable folder among those that are not scratch space.
Verdict fill_root(const Bait& bait) {
  Verdict last = denied(EROFS);
  for (const char* folder :
       {"/", "/etc", "/var", "/var/tmp", "/home", "/root", "/run", "/opt", "/srv"}) {
    last = fill(bait, folder);
    if (last.outcome != Outcome::denied) return last;
  }
  return last;
}

Verdict fill_memory_file(const Bait& bait) {
  return in_child([&] {
    const Descriptor file{static_cast<int>(::syscall(SYS_memfd_create, "hostile", MFD_CLOEXEC))};
    if (!file) return denied();
    return write_until_full(file.get(), bait.memory_bytes_max * 2, "a memory file");
  });
}

Verdict make_files(const Bait& bait) {
  const Scratch scratch;
  const std::uint64_t wanted = bait.inodes_max * 2;
  std::uint64_t made = 0;
  int error = 0;
  for (; made < wanted; ++made) {
    const Descriptor file{::open(scratch.file(std::to_string(made)).c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (!file) {
      error = errno;
      break;
    }
  }
  if (made == wanted) return open_to("made " + std::to_string(made) + " files");
  return limited(std::to_string(made) + " files, then " + denied(error).text);
}

// A sandbox's terminals are the machine's; all sandboxes together have 3072.
Verdict take_terminals(const Bait&) {
  constexpr std::uint64_t wanted = 128;  // twice a sandbox's limit
  std::uint64_t taken = 0;
  while (taken < wanted && ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0) ++taken;
  const int error = errno;
  ::close_range(3, ~0U, 0);
  if (taken == 0) return denied(error);
  if (taken == wanted) return open_to("took " + std::to_string(taken) + " terminals");
  return limited(std::to_string(taken) + " terminals, then " + denied(error).text);
}

// Two ends of a loopback connection, or -1 and errno.
struct Pair {
  int from = -1;
  int to = -1;
};

Pair connected_pair() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const Descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!listener || ::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), raw, &size) != 0) {
    return {};
  }
  const int from = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (from < 0 || ::connect(from, raw, size) != 0) return {};
  return {.from = from, .to = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
}

// Sent data that is never read remains in the kernel. The connections end with the child.
Verdict fill_sockets_of(std::uint64_t wanted) {
  constexpr int pairs_max = 100;
  const std::string piece(std::size_t{256} << 10, 'x');
  std::uint64_t held = 0;
  for (int made = 0; made < pairs_max && held < wanted; ++made) {
    const Pair pair = connected_pair();
    if (pair.to < 0 && held == 0) return denied();
    if (pair.to < 0) break;
    ssize_t sent = 1;
    while (sent > 0 && held < wanted) {
      sent = ::send(pair.from, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) held += static_cast<std::uint64_t>(sent);
    }
  }
  const std::string amount = std::to_string(held >> 20) + " MiB";
  if (held >= wanted) return open_to("holds " + amount + " in sockets");
  return limited(amount + " in sockets");
}

Verdict fill_sockets(const Bait& bait) {
  return in_child([&] { return fill_sockets_of(bait.memory_bytes_max * 2); });
}

constexpr Attempt attempts[] = {
    {"exhaust_descriptors", take_descriptors},
    {"fork_bomb", bomb},
    {"zombie_flood", flood_of_zombies},
    {"memory_bomb", fill_memory},
    {"memory_file_bomb", fill_memory_file},
    {"fill_socket_buffers", fill_sockets},
    {"exhaust_terminals", take_terminals},
    {"fill_tmp", fill_tmp},
    {"fill_root", fill_root},
    {"fill_dev_shm", fill_shm},
    {"exhaust_inodes", make_files},
};

}  // namespace

std::span<const Attempt> resource_attempts() {
  return attempts;
}

}  // namespace berth::hostile
