#include "keeper/sandbox/init.hpp"

#include "keeper/holder/process_tree.hpp"
#include "keeper/holder/warden.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/sandbox/setup.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <vector>

namespace berth::keeper::sandbox {
namespace {

constexpr int backlog = 128;

// If it cannot be written, the kernel chooses by size.
void say(int preference, std::string_view value) {
  const ssize_t ignored = ::pwrite(preference, value.data(), value.size(), 0);
  static_cast<void>(ignored);
}

void start_warden(int control, int preference, Fd channel, rlimit open_files) {
  say(preference, warden_preference);  // the warden and its command inherit it
  const pid_t pid = ::fork();
  if (pid != 0) say(preference, init_preference);
  if (pid == 0) {
    ::close(control);
    ::signal(SIGCHLD, SIG_DFL);
    run_waiting_warden(std::move(channel), open_files);
  }
  if (pid > 0) return;
  Report report{.kind = Report::Kind::failed, .failed_step = Step::fork, .failed_errno = errno};
  ::send(channel.get(), &report, sizeof report, MSG_NOSIGNAL);
}

Fd listen_on(std::uint16_t port) {
  Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) return {};
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    return {};
  }
  return socket;
}

// Never waits: the receiver of the socket does.
template <class Address>
Fd connect_to(const Address& address) {
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  Fd socket{::socket(raw->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) return {};
  if (::connect(socket.get(), raw, sizeof address) != 0 && errno != EINPROGRESS) return {};
  return socket;
}

// Every process in this pid namespace is a descendant of this one, and the kernel reaps its
// orphans. So it is alone when it has no child. Returns 0 or errno.
int be_alone() {
  constexpr int limit_ms = 5'000;
  constexpr int pause_ms = 1;
  // Without a pid namespace, kill(-1) would kill all processes of the user.
  if (::getpid() != 1) return EPERM;
  for (int waited_ms = 0; waited_ms < limit_ms; waited_ms += pause_ms) {
    ::kill(-1, SIGKILL);
    if (!has_children()) return 0;
    ::poll(nullptr, 0, pause_ms);
  }
  return EBUSY;
}

Fd socket_for(const InitRequest& request) {
  switch (request.kind) {
    case InitRequest::Kind::listener: return listen_on(request.port);
    case InitRequest::Kind::dial_v4: {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(request.port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      return connect_to(address);
    }
    case InitRequest::Kind::dial_v6: {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(request.port);
      address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
      return connect_to(address);
    }
    case InitRequest::Kind::warden:
    case InitRequest::Kind::empty: break;
  }
  errno = EINVAL;
  return {};
}

void answer_socket(int control, const InitRequest& request) {
  const Fd socket = socket_for(request);
  const InitReply reply{
      .error_number = socket ? 0 : errno, .kind = request.kind, .port = request.port};
  const std::array<int, 1> passed{socket.get()};
  send_with(control, {reinterpret_cast<const char*>(&reply), sizeof reply},
            std::span{passed}.first(socket ? 1 : 0), MSG_NOSIGNAL);
}

void answer_emptied(int control) {
  const InitReply reply{.error_number = be_alone(), .kind = InitRequest::Kind::empty};
  send_with(control, {reinterpret_cast<const char*>(&reply), sizeof reply}, {}, MSG_NOSIGNAL);
}

}  // namespace

void run_init(int control, int preference, rlimit open_files) {
  ::prctl(PR_SET_NAME, "berth-init");
  ::signal(SIGCHLD, SIG_IGN);  // so that the kernel reaps
  while (true) {
    InitRequest request;
    std::vector<Fd> passed;
    const ssize_t got =
        receive_with(control, {reinterpret_cast<char*>(&request), sizeof request}, passed, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof request) ::_exit(0);  // the keeper has ended
    switch (request.kind) {
      case InitRequest::Kind::warden:
        if (!passed.empty()) start_warden(control, preference, std::move(passed[0]), open_files);
        break;
      case InitRequest::Kind::listener:
      case InitRequest::Kind::dial_v4:
      case InitRequest::Kind::dial_v6: answer_socket(control, request); break;
      case InitRequest::Kind::empty: answer_emptied(control); break;
    }
  }
}

}  // namespace berth::keeper::sandbox
