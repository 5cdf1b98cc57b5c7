#include "base/files.hpp"
#include "keeper/holder/keeper.hpp"
#include "keeper/holder/prefork.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/sandbox/spare_networks.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

// The prefork process and the keepers forked from it.
namespace berth::keeper {
namespace {

// How many keepers are kept ready. They are made one at a time, so that they do not take CPU from
// keepers in use: when such a keeper ends, or when no request has come for longer than a short
// command takes.
constexpr std::size_t unborn_max = 4;
constexpr int quiet_ms = 20;
constexpr int exit_early = 1;

constexpr int channel_fd = 3;
constexpr int network_fd = 4;
constexpr int returns_fd = 5;
constexpr int first_free_fd = 6;

struct Unborn {
  pid_t pid = 0;
  Fd channel = {};
};

struct Request {
  std::string folder = {};
  Fd client = {};
};

std::optional<Request> receive_request(int socket) {
  Request request;
  request.folder.resize(PATH_MAX);
  std::vector<Fd> passed;
  ssize_t got = 0;
  do {
    got = receive_with(socket, request.folder, passed, 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0 || passed.size() != 1) return std::nullopt;
  request.folder.resize(static_cast<std::size_t>(got));
  request.client = std::move(passed[0]);
  return request;
}

bool forward(const Unborn& unborn, const Request& request) {
  const int passed = request.client.get();
  return send_with(unborn.channel.get(), request.folder, {&passed, 1},
                   MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

// Shows the command line that a keeper started alone for this folder would have.
void show(std::span<char> command_line, const std::string& folder) {
  std::ranges::fill(command_line, '\0');
  const std::string words = std::string{"berth-keeper\0hold\0", 18} + folder;
  words.copy(command_line.data(), command_line.size() - 1);
}

void log_to(const std::string& folder) {
  const std::string path = folder + "/" + log_file;
  const Fd log{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  if (log) ::dup2(log.get(), STDERR_FILENO);
}

// A network namespace, and the channel that returns it when no process is left in it. The prefork
// keeps no descriptor of a running keeper, because every later child would inherit a copy.
struct LentNetwork {
  Fd network = {};
  Fd returns = {};

  void give_back() const {
    if (!network) return;
    const int passed = network.get();
    // If the channel is full, the namespace ends with this process.
    send_with(returns.get(), "n", {&passed, 1}, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
};

// In the child: closes every descriptor of the prefork except these, which are moved to fixed
// numbers.
bool keep_only(int channel, int network, int returns) {
  const std::array<std::pair<int, int>, 3> kept{
      {{channel, channel_fd}, {network, network_fd}, {returns, returns_fd}}};
  std::array<int, kept.size()> high{};
  for (std::size_t i = 0; i < kept.size(); ++i) {
    high[i] = kept[i].first < 0 ? -1 : ::fcntl(kept[i].first, F_DUPFD_CLOEXEC, first_free_fd);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (high[i] < 0) {
      ::close(kept[i].second);
    } else if (::dup3(high[i], kept[i].second, O_CLOEXEC) < 0) {
      return false;
    }
  }
  ::close_range(first_free_fd, ~0U, 0);
  return high[0] >= 0;
}

// Prepares a sandbox, waits for its folder, and then runs as a keeper.
[[noreturn]] void grow_up(const LentNetwork& lent, const sandbox::CgroupLayout& layout,
                          rlimit open_files, std::span<char> command_line) {
  ::setsid();
  const Fd channel{channel_fd};
  auto unborn = sandbox::Cell::conceive({}, {.id = "preforked",
                                             .open_files = open_files,
                                             .command_line = command_line,
                                             .network_namespace = lent.network.get(),
                                             .layout = &layout});
  Result<ProcessIdentity> identity = identity_of(::getpid());
  if (!identity) ::_exit(exit_early);
  identity->groups_in = note_of(layout);
  // Without a prepared sandbox the keeper makes one on request, and reports what prevents it.
  Origin origin{.identity = *std::move(identity),
                .open_files = open_files,
                .command_line = command_line,
                .unborn = unborn ? *std::move(unborn) : nullptr};
  std::optional<Request> request = receive_request(channel.get());
  if (!request) {
    origin.unborn.reset();
    ::_exit(exit_early);
  }
  show(command_line, request->folder);
  log_to(request->folder);
  auto keeper = Keeper::open(request->folder, std::move(request->client), std::move(origin));
  if (!keeper) {
    std::fprintf(stderr, "berth-keeper: %s\n", keeper.error().message.c_str());
    ::_exit(exit_early);
  }
  (*keeper)->run();
  // Given back before the rest is torn down, which takes milliseconds where the kernel waits for an
  // RCU grace period.
  if ((*keeper)->left_nobody()) lent.give_back();
  keeper->reset();
  ::_exit(0);
}

class Loop {
 public:
  Loop(Fd control, std::span<char> command_line)
      : control_(std::move(control)),
        command_line_(command_line),
        open_files_(prepare_to_hold()),
        signals_(watch_signals()) {
    std::array<int, 2> pair{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) ::_exit(1);
    returned_ = Fd{pair[0]};
    returns_ = Fd{pair[1]};
    // Facts that are the same for all processes are read once, before any child is forked.
    [[maybe_unused]] const auto own = identity_of(::getpid());
  }

  [[noreturn]] void run() {
    while (true) {
      std::array<pollfd, 3> wanted{pollfd{control_.get(), POLLIN, 0},
                                   pollfd{signals_.get(), POLLIN, 0},
                                   pollfd{returned_.get(), POLLIN, 0}};
      const bool is_short = was_asked_ && stock_.size() < unborn_max;
      const int ready = ::poll(wanted.data(), wanted.size(), is_short ? quiet_ms : -1);
      if (ready == 0) stock();
      if (ready <= 0) continue;
      const bool has_one_ended = wanted[1].revents != 0 && take_signals();
      if (wanted[2].revents != 0) take_back();
      if (wanted[0].revents != 0) {
        serve();
      } else if (has_one_ended && is_short) {
        stock();
      }
    }
  }

 private:
  static Fd watch_signals() {
    sigset_t taken;
    ::sigemptyset(&taken);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&taken, number);
    return Fd{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  }

  void serve() {
    const std::optional<Request> request = receive_request(control_.get());
    if (!request) ::_exit(0);  // the server has ended; unborn keepers notice that this process has
    was_asked_ = true;
    while (!stock_.empty()) {
      Unborn oldest = std::move(stock_.front());
      stock_.erase(stock_.begin());
      if (forward(oldest, *request)) return;
    }
    if (const std::optional<Unborn> fresh = conceive()) forward(*fresh, *request);
  }

  void stock() {
    if (std::optional<Unborn> fresh = conceive()) stock_.push_back(*std::move(fresh));
  }

  std::optional<Unborn> conceive() {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return {};
    Unborn made{.pid = 0, .channel = Fd{pair[0]}};
    const Fd theirs{pair[1]};
    const bool has_ids = sandbox::standing_here() == sandbox::Standing::root;
    Fd network = has_ids ? networks_.take() : Fd{};
    made.pid = ::fork();
    if (made.pid == 0) {
      const bool is_lent = static_cast<bool>(network);
      if (!keep_only(theirs.get(), network.release(), is_lent ? returns_.get() : -1)) {
        ::_exit(exit_early);
      }
      const LentNetwork lent{.network = Fd{is_lent ? network_fd : -1},
                             .returns = Fd{is_lent ? returns_fd : -1}};
      grow_up(lent, layout_, open_files_, command_line_);
    }
    if (made.pid < 0) return {};
    return made;
  }

  void take_back() {
    std::array<char, 1> word{};
    std::vector<Fd> passed;
    const ssize_t got = receive_with(returned_.get(), word, passed, MSG_DONTWAIT);
    if (got > 0 && passed.size() == 1) networks_.give_back(std::move(passed[0]));
  }

  // Whether a keeper in use has ended. If an unused one ends, its replacement would fare no better.
  bool take_signals() {
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo != SIGCHLD) ::_exit(0);
    }
    int status = 0;
    pid_t pid = 0;
    bool has_one_ended = false;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      const auto is_it = [pid](const Unborn& unborn) { return unborn.pid == pid; };
      if (std::erase_if(stock_, is_it) == 0) has_one_ended = true;
    }
    return has_one_ended;
  }

  Fd control_;
  std::span<char> command_line_;
  rlimit open_files_;
  Fd signals_;
  sandbox::CgroupLayout layout_ = sandbox::detect_layout();
  bool was_asked_ = false;
  std::vector<Unborn> stock_;  // oldest first
  sandbox::SpareNetworks networks_;
  Fd returned_;  // where children return borrowed networks
  Fd returns_;   // the children's end of it
};

}  // namespace

void run_prefork(Fd control, std::span<char> command_line) {
  Loop{std::move(control), command_line}.run();
}

}  // namespace berth::keeper
