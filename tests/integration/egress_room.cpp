#include "egress_room.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace berth::egress_test {
namespace {

// The kernel's own header for it conflicts with netinet/in.h.
struct in6_ifreq {
  in6_addr ifr6_addr;
  std::uint32_t ifr6_prefixlen;
  int ifr6_ifindex;
};

ifreq request_for(const char* label, const char* address) {
  ifreq request{};
  std::memcpy(request.ifr_name, label, std::strlen(label) + 1);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &v4.sin_addr);
  std::memcpy(&request.ifr_addr, &v4, sizeof v4);
  return request;
}

// On a loopback interface all addresses of a subnet are local, like those of 127.0.0.0/8.
bool make_synthetic_addresses_local() {
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq address = request_for("lo:9", "198.18.0.1");
  ifreq mask = request_for("lo:9", "255.254.0.0");
  return ::ioctl(fd.get(), SIOCSIFADDR, &address) == 0 &&
         ::ioctl(fd.get(), SIOCSIFNETMASK, &mask) == 0;
}

Fd bound(int type, const char* address, unsigned short port) {
  Fd fd{::socket(AF_INET, type | SOCK_CLOEXEC, 0)};
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &v4.sin_addr);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4), 0)
      << port << " " << std::strerror(errno);
  return fd;
}

}  // namespace

bool raise_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = fd >= 0 && ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return up;
}

void add_address_v4(const char* address, const char* label) {
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request = request_for(label, address);
  EXPECT_EQ(::ioctl(fd.get(), SIOCSIFADDR, &request), 0) << std::strerror(errno);
}

bool add_address_v6(const char* address) {
  const Fd fd{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!fd) return false;
  in6_ifreq request{};
  request.ifr6_prefixlen = 128;
  request.ifr6_ifindex = static_cast<int>(::if_nametoindex("lo"));
  ::inet_pton(AF_INET6, address, &request.ifr6_addr);
  return ::ioctl(fd.get(), SIOCSIFADDR, &request) == 0;
}

Room::Room() {
  std::thread{[this] { failure = build(); }}.join();
}

std::string Room::build() {
  if (::geteuid() != 0) return "needs root, to mount a resolv.conf";
  if (::unshare(CLONE_FS | CLONE_NEWNET | CLONE_NEWNS) != 0) {
    return std::string{"no namespaces: "} + std::strerror(errno);
  }
  const std::string resolver = folder_.file("resolv.conf");
  std::ofstream{resolver} << "nameserver 127.0.0.1\n";
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(resolver.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0) {
    return std::string{"no resolv.conf to cover: "} + std::strerror(errno);
  }
  if (!raise_loopback() || !make_synthetic_addresses_local()) return std::strerror(errno);
  network_ = Fd{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)};
  mounts_ = Fd{::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC)};
  return network_ && mounts_ ? "" : std::strerror(errno);
}

void Room::enter(const std::function<void()>& function) const {
  std::thread{[&] {
    ASSERT_EQ(::unshare(CLONE_FS), 0);
    ASSERT_EQ(::setns(network_.get(), CLONE_NEWNET), 0);
    ASSERT_EQ(::setns(mounts_.get(), CLONE_NEWNS), 0);
    function();
  }}.join();
}

Fd Room::listener(unsigned short port) const {
  Fd made;
  enter([&] {
    made = bound(SOCK_STREAM, "0.0.0.0", port);
    EXPECT_EQ(::listen(made.get(), 128), 0);
  });
  return made;
}

Fd Room::name_socket() const {
  Fd made;
  enter([&] { made = bound(SOCK_DGRAM, "127.0.0.1", 53); });
  return made;
}

Room::Dialled Room::dial(const std::string& host, unsigned short port) const {
  Dialled dialled;
  enter([&] {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    dialled.error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (dialled.error != 0) return;
    dialled.fd = Fd{::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(::connect(dialled.fd.get(), found->ai_addr, found->ai_addrlen), 0)
        << host << " " << std::strerror(errno);
    ::freeaddrinfo(found);
  });
  return dialled;
}

std::string Room::run(const std::string& command) const {
  std::string output;
  enter([&] {
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "re");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 4096> chunk{};
    while (const std::size_t got = ::fread(chunk.data(), 1, chunk.size(), pipe)) {
      output.append(chunk.data(), got);
    }
    ::pclose(pipe);
  });
  return output;
}

}  // namespace berth::egress_test
