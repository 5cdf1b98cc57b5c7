#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/protocol.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// How a program starts keepers and talks to them.
namespace berth::keeper {

struct SpawnOptions {
  std::string program;                        // path of berth-keeper
  std::string folder;                         // created with mode 0700 if it is missing
  std::vector<std::string> environment = {};  // the keeper's own; commands get none of it
};

struct SpawnedKeeper {
  pid_t pid = 0;  // the caller must wait for it
  Fd control;     // the first connection
};

// The keeper runs in its own session and inherits nothing from the caller but the connection.
Result<SpawnedKeeper> spawn_keeper(const SpawnOptions& options);
// `keeper_unreachable` if no process listens there.
Result<Fd> connect_keeper(const std::string& folder);

// The client's side of the protocol without I/O: the owner of the socket moves the bytes. Sends
// hello first, so that the first request need not wait for the welcome.
class Connection {
 public:
  Connection() { append_frame(out_, 0, Hello{}); }

  template <Described Message>
  std::uint64_t send(const Message& message) {
    append_frame(out_, ++last_request_, message);
    return last_request_;
  }
  std::string_view outgoing() const { return out_; }
  void sent(std::size_t bytes) { out_.erase(0, bytes); }

  void received(std::string_view bytes) { in_.feed(bytes); }
  // Open files that came with the bytes, in order. Each `descriptor` answer has one.
  void received(Fd descriptor) { descriptors_.push_back(std::move(descriptor)); }
  // The file of the `descriptor` answer that next() has just returned.
  Result<Fd> take_descriptor();
  // The next answer. The welcome is checked and skipped. An error ends the connection.
  Result<std::optional<Frame>> next();

 private:
  std::string out_;
  FrameReader in_;
  std::deque<Fd> descriptors_;
  std::uint64_t last_request_ = 0;
};

// One request at a time over a blocking socket, for tests, tools and benchmarks.
class KeeperClient {
 public:
  using Limit = std::chrono::milliseconds;
  static constexpr Limit usual_limit{30'000};

  explicit KeeperClient(Fd socket) : socket_(std::move(socket)) {}

  Result<Started> exec(const Exec& exec);
  Result<Ended> wait(const std::string& exec_id, Limit limit = usual_limit);
  // exec and wait in one round trip.
  Result<Ended> run(const Exec& exec, Limit limit = usual_limit);
  // In pieces, each acknowledged before the next is sent: as fast as the command reads.
  Result<> write(const std::string& exec_id, const std::string& bytes);
  Result<> close_stdin(const std::string& exec_id);
  Result<> signal(const std::string& exec_id, int number);
  Result<> resize(const std::string& exec_id, std::uint16_t rows, std::uint16_t columns);
  Result<Usage> stats(const std::string& exec_id);
  Result<> renew(std::chrono::milliseconds deadline);
  Result<Ended> cancel(const std::string& exec_id, std::chrono::milliseconds grace);
  Result<> stop(std::chrono::milliseconds grace);
  Result<Listing> list();
  Result<Confined> confine(const sandbox::Plan& plan);
  Result<Fd> root(Part part = Part::root);
  Result<Fd> listener(std::uint16_t port);
  Result<Fd> dial(std::uint16_t port, LoopbackFamily family);
  Result<> freeze();
  Result<> thaw();
  Result<> empty();
  Result<Confined> remake();
  // Passes every piece of output to the visitor, until it returns false or the exec has ended.
  using Visit = std::function<bool(std::uint64_t offset, std::string_view bytes)>;
  Result<std::optional<Ended>> attach(const std::string& exec_id, std::uint64_t offset,
                                      const Visit& visit, Limit limit = usual_limit);

  // The parts, for callers with several requests in flight. An answer that comes before the
  // expected one is dropped: use Connection if every answer matters.
  template <Described Message>
  std::uint64_t send(const Message& message) {
    return connection_.send(message);
  }
  template <Described Message>
  Result<Message> answer_to(std::uint64_t request, Limit limit = usual_limit) {
    BERTH_TRY(const Frame frame, frame_for(request, limit));
    return decode<Message>(frame);
  }
  // Returns a refusal as an error.
  Result<Frame> frame_for(std::uint64_t request, Limit limit);

 private:
  template <Described Request>
  Result<> ask(const Request& request, Limit limit = usual_limit);
  template <Described Request>
  Result<Fd> ask_descriptor(const Request& request);
  Result<> flush();
  Result<Frame> next_frame(std::chrono::steady_clock::time_point until);

  Fd socket_;
  Connection connection_;
  std::unique_ptr<char[]> room_;  // receive buffer
};

}  // namespace berth::keeper
