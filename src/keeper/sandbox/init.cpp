#include "keeper/sandbox/init.hpp"

#include "keeper/descriptors.hpp"
#include "keeper/sandbox/setup.hpp"
#include "keeper/warden.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace berth::keeper::sandbox {
namespace {

constexpr int backlog = 128;

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

// Never waits: that is for whoever gets the socket.
template <class Address>
Fd connect_to(const Address& address) {
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  Fd socket{::socket(raw->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) return {};
  if (::connect(socket.get(), raw, sizeof address) != 0 && errno != EINPROGRESS) return {};
  return socket;
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
    case InitRequest::Kind::watch:
    case InitRequest::Kind::warden: break;
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

class Init {
 public:
  Init(int control, rlimit open_files) : control_(control), open_files_(open_files) {
    duties_.door = control;
    duties_.serve = [this] { serve(); };
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    children_ = Fd{::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!children_) ::_exit(1);
  }

  [[noreturn]] void run() {
    while (true) {
      std::array<pollfd, 3> wanted{pollfd{control_, POLLIN, 0}, pollfd{children_.get(), POLLIN, 0},
                                   pollfd{warden_ ? warden_->channel() : -1, POLLIN, 0}};
      if (::poll(wanted.data(), wanted.size(), -1) <= 0) continue;
      if (wanted[0].revents != 0) serve();
      if (wanted[1].revents != 0) reap();
      if (wanted[2].revents != 0 && !warden_->serve_command()) warden_.reset();
    }
  }

 private:
  void reap() {
    signalfd_siginfo ignored{};
    while (::read(children_.get(), &ignored, sizeof ignored) > 0) {
    }
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) std::erase(duties_.wardens, pid);
  }

  void serve() {
    InitRequest request;
    std::vector<Fd> passed;
    const ssize_t got = receive_with(control_, {reinterpret_cast<char*>(&request), sizeof request},
                                     passed, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got != sizeof request) ::_exit(0);  // the keeper is gone
    switch (request.kind) {
      case InitRequest::Kind::watch:
        if (!passed.empty() && !warden_) {
          warden_.emplace(std::move(passed[0]), children_.get(), open_files_, duties_);
        }
        return;
      case InitRequest::Kind::warden:
        if (!passed.empty()) start_warden(std::move(passed[0]));
        return;
      case InitRequest::Kind::listener:
      case InitRequest::Kind::dial_v4:
      case InitRequest::Kind::dial_v6: return answer_socket(control_, request);
    }
  }

  void start_warden(Fd channel) {
    const pid_t pid = ::fork();
    if (pid == 0) run_waiting_warden(std::move(channel), open_files_);
    if (pid > 0) return duties_.wardens.push_back(pid);
    Report report{.kind = Report::Kind::failed, .failed_step = Step::fork, .failed_errno = errno};
    ::send(channel.get(), &report, sizeof report, MSG_NOSIGNAL);
  }

  int control_;
  rlimit open_files_;
  Fd children_;
  Duties duties_;
  std::optional<WardenInInit> warden_;
};

}  // namespace

void run_init(int control, rlimit open_files) {
  ::prctl(PR_SET_NAME, "berth-init");
  Init{control, open_files}.run();
}

}  // namespace berth::keeper::sandbox
