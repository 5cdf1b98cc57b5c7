#include "keeper/holder/relay.hpp"

#include "base/files.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/protocol/protocol.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

namespace berth::keeper {
namespace {

constexpr const char* own_program = "/proc/self/exe";
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_failure("write", "relay", errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<Fd> open_keeper(const std::string& root, const Open& open) {
  if (!is_exec_id(open.keeper_id)) {
    return fail(Errc::validation_failed, "the keeper's id is not the name of a folder");
  }
  const std::string folder = root + "/" + open.keeper_id;
  const bool is_there = ::access((folder + "/" + card_file).c_str(), F_OK) == 0;
  if (open.how == OpenHow::attach || (open.how == OpenHow::start_or_attach && is_there)) {
    return connect_keeper(folder);
  }
  if (is_there) return fail(Errc::conflict, folder + ": is or was the folder of another keeper");
  BERTH_DO(make_directories(root, 0700));
  BERTH_TRY(SpawnedKeeper spawned, spawn_keeper({.program = own_program, .folder = folder}));
  return std::move(spawned.control);
}

// Reads exactly one frame from stdin: the rest is for the keeper.
Result<std::string> first_frame() {
  std::string bytes;
  FrameReader reader;
  char byte = 0;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(Errc::keeper_protocol, "stdin ended before the first message");
    bytes += byte;
    reader.feed({&byte, 1});
    BERTH_TRY(const std::optional<Frame> frame, reader.next());
    if (frame) return bytes;
  }
}

// Bytes in one direction. What was read is written before more is read, so back-pressure on one
// side reaches the other.
class Direction {
 public:
  Direction(int from, int to) : from_(from), to_(to), buffer_(piece_bytes) {}

  pollfd wanted() const {
    return begin_ == end_ ? pollfd{from_, POLLIN, 0} : pollfd{to_, POLLOUT, 0};
  }
  // False when the source has ended.
  Result<bool> move() {
    if (begin_ != end_) {
      const ssize_t wrote = ::write(to_, buffer_.data() + begin_, end_ - begin_);
      if (wrote < 0 && errno != EINTR && errno != EAGAIN)
        return io_failure("write", "relay", errno);
      if (wrote > 0) begin_ += static_cast<std::size_t>(wrote);
      return true;
    }
    const ssize_t got = ::read(from_, buffer_.data(), buffer_.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN) return io_failure("read", "relay", errno);
    begin_ = 0;
    end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return got != 0;
  }

 private:
  int from_;
  int to_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

Result<> relay(int keeper) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, keeper}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  Direction to_keeper{STDIN_FILENO, keeper};
  Direction from_keeper{keeper, STDOUT_FILENO};
  while (true) {
    std::array<pollfd, 2> wanted{to_keeper.wanted(), from_keeper.wanted()};
    if (::poll(wanted.data(), wanted.size(), -1) < 0) continue;
    if (wanted[1].revents != 0) {
      BERTH_TRY(const bool more, from_keeper.move());
      if (!more) return {};
    }
    if (wanted[0].revents != 0) {
      BERTH_TRY(const bool more, to_keeper.move());
      if (!more) return {};
    }
  }
}

}  // namespace

Result<> serve_stdio(const std::string& root) {
  ::signal(SIGPIPE, SIG_IGN);
  BERTH_TRY(const std::string bytes, first_frame());
  FrameReader reader;
  reader.feed(bytes);
  BERTH_TRY(const std::optional<Frame> frame, reader.next());
  Result<Fd> keeper = fail(Errc::keeper_protocol, "the first message must be open");
  if (const Result<Open> open = decode<Open>(*frame)) keeper = open_keeper(root, *open);
  std::string reply;
  if (keeper) append_frame(reply, frame->request, Done{});
  if (!keeper) append_frame(reply, frame->request, as_refused(keeper.error()));
  BERTH_DO(write_all(STDOUT_FILENO, reply));
  if (!keeper) return std::unexpected(std::move(keeper).error());
  return relay(keeper->get());
}

}  // namespace berth::keeper
