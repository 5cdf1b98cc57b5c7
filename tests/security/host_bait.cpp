#include "security/host_bait.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/random.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace berth::security_test {

namespace {

constexpr int backlog = 64;

Fd listen_at(int family, const sockaddr* address, socklen_t size) {
  Fd socket{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  BERTH_ASSERT(::bind(socket.get(), address, size) == 0);
  BERTH_ASSERT(::listen(socket.get(), backlog) == 0);
  return socket;
}

Fd listen_at_name(const std::string& name, std::size_t hidden) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  BERTH_ASSERT(name.size() + hidden < sizeof address.sun_path);
  std::memcpy(address.sun_path + hidden, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + hidden + name.size());
  return listen_at(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), size);
}

Fd listen_at_loopback(std::uint16_t& port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  Fd socket = listen_at(AF_INET, any, sizeof address);
  socklen_t size = sizeof address;
  BERTH_ASSERT(::getsockname(socket.get(), any, &size) == 0);
  port = ntohs(address.sin_port);
  return socket;
}

// TYPE:HEX, or nothing if the file system has no handles.
std::string handle_of(const std::string& path) {
  alignas(file_handle) char storage[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto& handle = *new (storage) file_handle{};
  handle.handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(AT_FDCWD, path.c_str(), &handle, &mount, 0) != 0) return {};
  return std::to_string(handle.handle_type) + ":" +
         hex({static_cast<const unsigned char*>(handle.f_handle), handle.handle_bytes});
}

std::string device_of(const std::string& path) {
  struct stat found = {};
  ::stat(path.c_str(), &found);
  return std::to_string(major(found.st_dev)) + ":" + std::to_string(minor(found.st_dev));
}

std::string namespace_of(const std::string& kind) {
  struct stat found = {};
  ::stat(("/proc/self/ns/" + kind).c_str(), &found);
  return std::to_string(found.st_ino);
}

}  // namespace

HostBait::HostBait(const std::string& hostile) {
  unsigned char bytes[8];
  BERTH_ASSERT(::getentropy(bytes, sizeof bytes) == 0);
  marker_ = "bait-" + hex(bytes);
  ::chmod(folder_.path().c_str(), 0755);
  BERTH_ASSERT(create_file(folder_.file("secret"), marker_ + "\n", 0644));
  // Without O_CLOEXEC, to check that it is not passed on.
  inherited_ = Fd{::open(folder_.file("secret").c_str(), O_RDONLY)};
  abstract_ = listen_at_name(marker_, 1);
  path_ = listen_at_name(folder_.file("socket"), 0);
  ::chmod(folder_.file("socket").c_str(), 0777);
  loopback_ = listen_at_loopback(port_);
  terminal_ = Fd{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  char name[64] = {};
  if (terminal_ && ::unlockpt(terminal_.get()) == 0 &&
      ::ptsname_r(terminal_.get(), name, sizeof name) == 0) {
    terminal_name_ = name;
    const std::string typed = marker_ + "\n";
    BERTH_ASSERT(::write(terminal_.get(), typed.data(), typed.size()) > 0);
  }
  start_process(hostile);
}

void HostBait::start_process(const std::string& hostile) {
  const std::string environment = secret();
  process_ = ::fork();
  BERTH_ASSERT(process_ >= 0);
  if (process_ != 0) return;
  char* const words[] = {const_cast<char*>("hostile"), const_cast<char*>("bait"), marker_.data(),
                         nullptr};
  char* const variables[] = {const_cast<char*>(environment.c_str()), nullptr};
  if (::chdir(folder_.path().c_str()) == 0) ::execve(hostile.c_str(), words, variables);
  ::_exit(127);
}

HostBait::~HostBait() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::vector<std::string> HostBait::arguments() const {
  const auto number = [](const char* key, auto value) {
    return std::string{key} + "=" + std::to_string(value);
  };
  const std::string file = folder_.file("secret");
  return {"marker=" + marker_,
          "file=" + file,
          "handle=" + handle_of(file),
          "device=" + device_of(file),
          "abstract_socket=" + marker_,
          "socket_path=" + folder_.file("socket"),
          "terminal=" + terminal_name_,
          number("pid", process_),
          number("port", port_),
          "network_namespace=" + namespace_of("net"),
          "hostname_namespace=" + namespace_of("uts"),
          number("files_max", files_max),
          number("processes_max", processes_max),
          number("memory_bytes_max", memory_bytes_max),
          number("disk_bytes_max", disk_bytes_max),
          number("inodes_max", inodes_max)};
}

}  // namespace berth::security_test
