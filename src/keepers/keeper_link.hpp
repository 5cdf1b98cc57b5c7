#pragma once

#include "base/async/task_group.hpp"
#include "base/owned.hpp"
#include "keeper/protocol/client.hpp"
#include "keepers/command.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace berth::keepers {

// One connection to a keeper, with any number of requests in flight, each with its own answer. A
// task of the group reads it; the group must outlive the link. When the connection breaks, every
// waiting request fails with keeper_unreachable, and so does every later one. SIGPIPE must be
// ignored, as it is in the server.
//
// The requests of one link share its stream of answers. A taker that stops for megabytes of output
// delays the answers behind that output; where that matters, follow on a separate link.
class KeeperLink {
 public:
  using Limit = std::chrono::milliseconds;
  static constexpr Limit usual_limit{30'000};

  struct Ends {
    Fd in;
    Fd out = {};  // none: `in` is a socket, for both directions
    // The name of the other end, for errors: "lease 7f3a".
    std::string name;
    // What `berth-keeper serve-stdio` must receive first. If it refuses, the link breaks, and every
    // request fails with that error.
    std::optional<keeper::Open> open = {};
  };
  KeeperLink(const asio::any_io_executor& executor, TaskGroup& tasks, Ends ends);
  KeeperLink(KeeperLink&&) noexcept = default;
  KeeperLink& operator=(KeeperLink&&) = delete;
  KeeperLink(const KeeperLink&) = delete;
  KeeperLink& operator=(const KeeperLink&) = delete;
  // Breaks the link without waiting for its reader to notice.
  ~KeeperLink();

  // The answer to a request; a refusal is an error. `timed_out` if there is none within the limit:
  // the request may still take effect. The request is encoded at once, so it need not outlive the
  // call, and its secrets are not copied for the wait.
  template <keeper::Described Answer, keeper::Described Request>
  Task<Answer> ask(const Request& request, Limit limit = usual_limit) {
    return answer_as<Answer>(state_, connection_of(*state_).send(request), limit);
  }

  // Output from an offset on, and how the command ended. If the link ends, that is an error,
  // returned after everything that had arrived was taken. The protocol has no way to stop
  // following: after an error from the taker the rest of the output is received and dropped, unless
  // the link is closed.
  Task<Ended> follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) {
    return follow_on(state_, std::move(exec_id), offset, taker);
  }

  // Why the link is unusable; empty while it works.
  const std::optional<Error>& broken() const;
  // Waits until the other side has closed the connection, as a keeper does when it ends.
  Task<> wait_for_end(Limit limit) { return wait_for_end_on(state_, limit); }
  Task<> close() { return close_on(state_); }

 private:
  struct State;
  struct Answered {
    keeper::Verb verb = keeper::Verb::none;
    std::string message;
  };
  class Waiting;
  class Following;
  class ReaderEnd;

  template <class Answer>
  static Task<Answer> answer_as(std::shared_ptr<State> state, std::uint64_t id, Limit limit) {
    BERTH_CO_TRY(const Answered answered, co_await answer_to(std::move(state), id, limit));
    co_return keeper::decode<Answer>(
        {.verb = answered.verb, .request = id, .message = answered.message});
  }

  static keeper::Connection& connection_of(State& state);
  static Task<Answered> answer_to(std::shared_ptr<State> state, std::uint64_t id, Limit limit);
  static Task<Ended> follow_on(std::shared_ptr<State> state, std::string exec_id,
                               std::uint64_t offset, OutputTaker& taker);
  static Task<> wait_for_end_on(std::shared_ptr<State> state, Limit limit);
  static Task<> close_on(std::shared_ptr<State> state);
  static Task<> read(std::shared_ptr<State> state);
  static Task<> hand_out(State& state);
  static void flush(const std::shared_ptr<State>& state);
  static Task<> write(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace berth::keepers
