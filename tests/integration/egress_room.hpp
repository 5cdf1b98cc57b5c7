#pragma once

#include "egress_fixture.hpp"

#include "support/temporary_folder.hpp"

#include <functional>

// Network namespaces that have only a loopback, and addresses on it.
namespace berth::egress_test {

// Addresses of the internet, which a room has on an interface of its own.
inline constexpr const char* public_v4 = "93.184.216.34";
inline constexpr const char* public_v6 = "2606:2800:220:1::1";

// Of the namespace that the calling thread is in. Only system calls, so that a forked process may
// use it as well.
bool raise_loopback();
void add_address_v4(const char* address, const char* label = "lo:1");
// False if the kernel has no IPv6.
bool add_address_v6(const char* address);

// A network namespace as the keeper makes it for a worker: synthetic addresses are local, and
// programs use 127.0.0.1 as resolver. Needs root.
class Room {
 public:
  Room();

  // Runs the function in a thread inside, and waits for its end.
  void enter(const std::function<void()>& function) const;
  // A socket that listens on this port on all addresses.
  Fd listener(unsigned short port) const;
  // UDP at 127.0.0.1:53.
  Fd name_socket() const;
  // A connection to a name's first address, as any program makes it. `error` is that of
  // getaddrinfo.
  struct Dialled {
    int error = 0;
    Fd fd;
  };
  Dialled dial(const std::string& host, unsigned short port) const;
  // A command's output on both streams.
  std::string run(const std::string& command) const;

  std::string failure;  // why there is none; empty: there is one

 private:
  std::string build();

  tests::TemporaryFolder folder_;
  Fd network_;
  Fd mounts_;
};

}  // namespace berth::egress_test
