#include "keeper/relay.hpp"

#include "base/files.hpp"
#include "keeper/client.hpp"
#include "keeper/protocol.hpp"
#include "keeper/state_folder.hpp"

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

Result<std::size_t> read_some(int fd, std::vector<char>& into) {
  while (true) {
    const ssize_t got = ::read(fd, into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return io_failure("read", "relay", errno);
  }
}

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
    return fail(Errc::validation_failed, "the keeper's id is no name of a folder");
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

// A frame's worth of bytes from stdin and no byte more: the rest is the keeper's.
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

// Blocks where the slower side is slow: the back-pressure of one is that of the other.
Result<> relay(int keeper) {
  std::vector<char> piece(piece_bytes);
  std::array<pollfd, 2> wanted{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{keeper, POLLIN, 0}};
  while (true) {
    if (::poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) {
      return io_failure("poll", "relay", errno);
    }
    if (wanted[1].revents != 0) {
      BERTH_TRY(const std::size_t got, read_some(keeper, piece));
      if (got == 0) return {};
      BERTH_DO(write_all(STDOUT_FILENO, {piece.data(), got}));
    }
    if (wanted[0].revents != 0) {
      BERTH_TRY(const std::size_t got, read_some(STDIN_FILENO, piece));
      if (got == 0) return {};
      BERTH_DO(write_all(keeper, {piece.data(), got}));
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
