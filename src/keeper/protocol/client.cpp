#include "keeper/protocol/client.hpp"

#include "base/files.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace berth::keeper {
namespace {

constexpr int control_fd = 3;
constexpr std::size_t write_bytes = std::size_t{256} << 10;
constexpr std::size_t receive_bytes = std::size_t{256} << 10;

struct SpawnActions {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};

  SpawnActions() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
};

void describe_keeper(SpawnActions& actions, int socket, const std::string& log) {
  // The socket is moved first: it may have one of the numbers that are opened next.
  ::posix_spawn_file_actions_adddup2(&actions.files, socket, control_fd);
  ::posix_spawn_file_actions_addopen(&actions.files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addopen(&actions.files, STDOUT_FILENO, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addopen(&actions.files, STDERR_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
  sigset_t all;
  ::sigfillset(&all);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&actions.attributes, &all);
  ::posix_spawnattr_setsigmask(&actions.attributes, &none);
  ::posix_spawnattr_setflags(&actions.attributes,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
}

}  // namespace

Result<SpawnedKeeper> spawn_keeper(const SpawnOptions& options) {
  if (::mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return io_failure("mkdir", options.folder, errno);
  }
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return io_failure("socketpair", options.folder, errno);
  }
  Fd ours{pair[0]};
  Fd theirs{pair[1]};
  if (theirs.get() <= control_fd) {
    // dup2 onto the same number would leave it close-on-exec.
    theirs = Fd{::fcntl(theirs.get(), F_DUPFD_CLOEXEC, control_fd + 1)};
  }
  const std::string log = options.folder + "/" + log_file;
  SpawnActions actions;
  describe_keeper(actions, theirs.get(), log);
  std::string program = options.program;
  std::string verb = "hold";
  std::string folder = options.folder;
  std::array<char*, 4> argv{program.data(), verb.data(), folder.data(), nullptr};
  std::vector<std::string> variables = options.environment;
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t pid = 0;
  const int error_number = ::posix_spawn(&pid, program.c_str(), &actions.files, &actions.attributes,
                                         argv.data(), environment.data());
  if (error_number != 0) return io_failure("start", program, error_number);
  return SpawnedKeeper{.pid = pid, .control = std::move(ours)};
}

Result<Fd> connect_keeper(const std::string& folder) {
  const Fd directory{::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) return io_failure("open", folder, errno);
  // With the descriptor the name fits into the address, however deep the folder is.
  const std::string path =
      "/proc/self/fd/" + std::to_string(directory.get()) + "/" + std::string{socket_file};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket) return io_failure("socket", folder, errno);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail(Errc::keeper_unreachable, folder + ": no keeper listens there",
                "its files say whether and how it ended");
  }
  return socket;
}

Result<std::optional<Frame>> Connection::next() {
  BERTH_TRY(const std::optional<Frame> frame, in_.next());
  if (!frame || frame->request != 0) return frame;
  if (frame->verb == Verb::refused) {
    BERTH_TRY(const Refused refused, decode<Refused>(*frame));
    return std::unexpected(as_error(refused));
  }
  BERTH_DO(decode<Welcome>(*frame));
  return in_.next();
}

Result<Fd> Connection::take_descriptor() {
  if (descriptors_.empty()) {
    return fail(Errc::keeper_protocol, "the answer came without its descriptor",
                "descriptors pass only between processes of one machine");
  }
  Fd taken = std::move(descriptors_.front());
  descriptors_.pop_front();
  return taken;
}

Result<> KeeperClient::flush() {
  while (!connection_.outgoing().empty()) {
    const std::string_view out = connection_.outgoing();
    const ssize_t wrote = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    // What the keeper has already sent explains why it stopped reading; that is read next.
    if (wrote < 0 && errno == EPIPE) return {};
    if (wrote < 0) return io_failure("send", "a keeper", errno);
    connection_.sent(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<Frame> KeeperClient::next_frame(std::chrono::steady_clock::time_point until) {
  while (true) {
    BERTH_TRY(const std::optional<Frame> frame, connection_.next());
    if (frame) return *frame;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd wanted{socket_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count()) + 1) == 0) {
      return fail(Errc::timed_out, "the keeper has not answered in time");
    }
    // Not cleared, and reused: most answers fill only one page of it.
    if (!room_) room_ = std::make_unique_for_overwrite<char[]>(receive_bytes);
    std::vector<Fd> descriptors;
    const Received received =
        receive_noting_loss(socket_.get(), {room_.get(), receive_bytes}, descriptors, MSG_DONTWAIT);
    const ssize_t got = received.bytes;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return fail(Errc::keeper_unreachable, "the keeper has closed the connection");
    if (received.has_lost_descriptors) {
      Error why = io_failure("take a descriptor from", "a keeper", EMFILE).error();
      why.remedy = "raise the limit: LimitNOFILE=65536 in the service, or 'ulimit -n 65536'";
      return std::unexpected(std::move(why));
    }
    connection_.received({room_.get(), static_cast<std::size_t>(got)});
    for (Fd& descriptor : descriptors) connection_.received(std::move(descriptor));
  }
}

Result<Frame> KeeperClient::frame_for(std::uint64_t request, Limit limit) {
  BERTH_DO(flush());
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    BERTH_TRY(const Frame frame, next_frame(until));
    if (frame.request != request) continue;  // answers an abandoned request
    if (frame.verb != Verb::refused) return frame;
    BERTH_TRY(const Refused refused, decode<Refused>(frame));
    return std::unexpected(as_error(refused));
  }
}

template <Described Request>
Result<> KeeperClient::ask(const Request& request, Limit limit) {
  BERTH_DO(answer_to<Done>(send(request), limit));
  return {};
}

template <Described Request>
Result<Fd> KeeperClient::ask_descriptor(const Request& request) {
  BERTH_DO(answer_to<Descriptor>(send(request)));
  return connection_.take_descriptor();
}

Result<Confined> KeeperClient::confine(const sandbox::Plan& plan) {
  return answer_to<Confined>(send(Confine{.plan = plan}));
}

Result<Fd> KeeperClient::root(Part part) {
  return ask_descriptor(Root{.part = part});
}

Result<Fd> KeeperClient::listener(std::uint16_t port) {
  return ask_descriptor(Listener{.port = port});
}

Result<Fd> KeeperClient::dial(std::uint16_t port, LoopbackFamily family) {
  return ask_descriptor(Dial{.port = port, .family = family});
}

Result<> KeeperClient::freeze() {
  return ask(Freeze{});
}

Result<> KeeperClient::thaw() {
  return ask(Thaw{});
}

Result<> KeeperClient::empty() {
  return ask(Empty{});
}

Result<Confined> KeeperClient::remake() {
  return answer_to<Confined>(send(Remake{}));
}

Result<Started> KeeperClient::exec(const Exec& exec) {
  return answer_to<Started>(send(exec));
}

Result<Ended> KeeperClient::wait(const std::string& exec_id, Limit limit) {
  return answer_to<Ended>(send(Wait{.exec_id = exec_id}), limit);
}

Result<Ended> KeeperClient::run(const Exec& exec, Limit limit) {
  const std::uint64_t started = send(exec);
  const std::uint64_t ended = send(Wait{.exec_id = exec.exec_id});
  BERTH_DO(answer_to<Started>(started, limit));
  return answer_to<Ended>(ended, limit);
}

Result<> KeeperClient::write(const std::string& exec_id, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += write_bytes) {
    BERTH_DO(ask(Write{.exec_id = exec_id, .bytes = bytes.substr(at, write_bytes)}));
  }
  return {};
}

Result<> KeeperClient::close_stdin(const std::string& exec_id) {
  return ask(CloseStdin{.exec_id = exec_id});
}

Result<> KeeperClient::signal(const std::string& exec_id, int number) {
  return ask(Signal{.exec_id = exec_id, .number = number});
}

Result<> KeeperClient::resize(const std::string& exec_id, std::uint16_t rows,
                              std::uint16_t columns) {
  return ask(Resize{.exec_id = exec_id, .rows = rows, .columns = columns});
}

Result<Usage> KeeperClient::stats(const std::string& exec_id) {
  return answer_to<Usage>(send(Stats{.exec_id = exec_id}));
}

Result<> KeeperClient::renew(std::chrono::milliseconds deadline) {
  return ask(Renew{.deadline_ms = static_cast<std::uint64_t>(deadline.count())});
}

Result<Ended> KeeperClient::cancel(const std::string& exec_id, std::chrono::milliseconds grace) {
  const Cancel cancel{.exec_id = exec_id, .grace_ms = static_cast<std::uint64_t>(grace.count())};
  return answer_to<Ended>(send(cancel), grace + usual_limit);
}

Result<> KeeperClient::stop(std::chrono::milliseconds grace) {
  return ask(Stop{.grace_ms = static_cast<std::uint64_t>(grace.count())}, grace + usual_limit);
}

Result<Listing> KeeperClient::list() {
  return answer_to<Listing>(send(List{}));
}

Result<std::optional<Ended>> KeeperClient::attach(const std::string& exec_id, std::uint64_t offset,
                                                  const Visit& visit, Limit limit) {
  const std::uint64_t request = send(Attach{.exec_id = exec_id, .offset = offset});
  while (true) {
    BERTH_TRY(const Frame frame, frame_for(request, limit));
    if (frame.verb == Verb::ended) {
      BERTH_TRY(Ended ended, decode<Ended>(frame));
      return ended;
    }
    BERTH_TRY(const Output output, decode<Output>(frame));
    if (!visit(output.offset, output.bytes)) return std::nullopt;
  }
}

}  // namespace berth::keeper
