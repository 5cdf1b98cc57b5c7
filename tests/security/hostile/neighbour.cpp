#include "security/hostile/neighbour.hpp"

#include "security/hostile/tools.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>

namespace berth::hostile {

namespace {

// One way in which processes of one machine can meet. The name is the same on both sides.
struct Meeting {
  const char* kind;
  bool (*leave)(const std::string& name);
  bool (*find)(const std::string& name);
};

std::uint16_t port_of(const std::string& name) {
  return static_cast<std::uint16_t>(20000 + std::hash<std::string>{}(name) % 20000);
}

key_t key_of(const std::string& name) {
  return static_cast<key_t>(0x62000000U | (std::hash<std::string>{}(name) & 0xffffffU));
}

bool make_file(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666) >= 0;
}

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

bool meet_at_abstract(const std::string& name, int (*act)(int, const sockaddr*, socklen_t)) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (act(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0) return false;
  ::listen(socket, 8);
  return true;
}

bool meet_at_port(const std::string& name, int (*act)(int, const sockaddr*, socklen_t)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of(name));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (act(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  ::listen(socket, 8);
  return true;
}

constexpr int shared = 0666;

constexpr Meeting meetings[] = {
    {"file in /tmp", [](const std::string& name) { return make_file("/tmp/" + name); },
     [](const std::string& name) { return is_there("/tmp/" + name); }},
    {"file in /dev/shm", [](const std::string& name) { return make_file("/dev/shm/" + name); },
     [](const std::string& name) { return is_there("/dev/shm/" + name); }},
    {"file in the root", [](const std::string& name) { return make_file("/home/" + name); },
     [](const std::string& name) { return is_there("/home/" + name); }},
    {"abstract socket", [](const std::string& name) { return meet_at_abstract(name, ::bind); },
     [](const std::string& name) { return meet_at_abstract(name, ::connect); }},
    {"loopback port", [](const std::string& name) { return meet_at_port(name, ::bind); },
     [](const std::string& name) { return meet_at_port(name, ::connect); }},
    {"shared memory segment",
     [](const std::string& name) { return ::shmget(key_of(name), 4096, IPC_CREAT | shared) >= 0; },
     [](const std::string& name) { return ::shmget(key_of(name), 4096, 0) >= 0; }},
    {"semaphore",
     [](const std::string& name) { return ::semget(key_of(name), 1, IPC_CREAT | shared) >= 0; },
     [](const std::string& name) { return ::semget(key_of(name), 1, 0) >= 0; }},
    {"System V queue",
     [](const std::string& name) { return ::msgget(key_of(name), IPC_CREAT | shared) >= 0; },
     [](const std::string& name) { return ::msgget(key_of(name), 0) >= 0; }},
    {"POSIX queue",
     [](const std::string& name) {
       return ::mq_open(("/" + name).c_str(), O_RDWR | O_CREAT, shared, nullptr) >= 0;
     },
     [](const std::string& name) { return ::mq_open(("/" + name).c_str(), O_RDONLY) >= 0; }},
    {"key",
     [](const std::string& name) {
       return ::syscall(SYS_add_key, "user", name.c_str(), "x", 1, KEY_SPEC_USER_KEYRING) >= 0;
     },
     [](const std::string& name) {
       return ::syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", name.c_str(),
                        0) >= 0;
     }},
    // The name is in the arguments of the process that leaves it.
    {"process", [](const std::string&) { return true; },
     [](const std::string& name) {
       for (const pid_t pid : visible_processes()) {
         const std::string command = contents_of("/proc/" + std::to_string(pid) + "/cmdline");
         if (command.contains("leave") && command.contains(name)) return true;
       }
       return false;
     }},
};

}  // namespace

int neighbour(const std::vector<std::string_view>& arguments) {
  if (arguments.size() != 3) return 1;
  const std::string name{arguments[2]};
  const bool leaves = arguments[1] == "leave";
  for (const Meeting& meeting : meetings) {
    if (leaves && meeting.leave(name)) std::printf("left %s\n", meeting.kind);
    if (!leaves && meeting.find(name)) std::printf("found %s\n", meeting.kind);
  }
  std::puts(leaves ? "waiting" : "looked");
  std::fflush(stdout);
  while (leaves) ::pause();
  return 0;
}

}  // namespace berth::hostile
