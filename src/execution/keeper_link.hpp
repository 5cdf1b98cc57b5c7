#pragma once

#include "base/async/task_group.hpp"
#include "base/owned.hpp"
#include "execution/execution.hpp"
#include "keeper/protocol/client.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace berth::execution {

// One connection to a keeper: any number of requests under way at a time, each with its own answer.
// It is read by one task of the group, which must outlive the link. When the connection breaks,
// every request that waits fails with keeper_unreachable, and so does every later one. SIGPIPE must
// be ignored, as it is in the server.
//
// The requests of one link share its stream of answers. A taker of output that stands still for
// megabytes holds up the answers behind that output; where that matters, follow on a link of its
// own.
class KeeperLink {
 public:
  using Limit = std::chrono::milliseconds;
  static constexpr Limit usual_limit{30'000};

  struct Ends {
    Fd in;
    Fd out = {};  // none: `in` is a socket, for both ways
    // Who is at the other end, for errors: "lease 7f3a".
    std::string name;
    // What `berth-keeper serve-stdio` must be told before all else. Its refusal breaks the link,
    // and is then the error of every request.
    std::optional<keeper::Open> open = {};
  };
  KeeperLink(const asio::any_io_executor& executor, TaskGroup& tasks, Ends ends);
  KeeperLink(KeeperLink&&) noexcept = default;
  KeeperLink& operator=(KeeperLink&&) = delete;
  KeeperLink(const KeeperLink&) = delete;
  KeeperLink& operator=(const KeeperLink&) = delete;
  // Breaks the link without waiting for its reader to notice.
  ~KeeperLink();

  // The answer to a request; a refusal is an error. `timed_out` when there is none within the
  // limit: what was asked for may still happen. The request is encoded at once, so it need not
  // outlive the call, and no copy of the secrets in it is made for the wait.
  template <keeper::Described Answer, keeper::Described Request>
  Task<Answer> ask(const Request& request, Limit limit = usual_limit) {
    return answer_as<Answer>(state_, connection_of(*state_).send(request), limit);
  }

  // Output from an offset on, and how the command ended. The end of the link is an error, after
  // all that had arrived was taken. The protocol knows no way to give up: after an error of the
  // taker the rest of the output is received and dropped, unless the link is closed.
  Task<Ended> follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) {
    return follow_on(state_, std::move(exec_id), offset, taker);
  }

  // Why the link is of no use any more; nothing while it is.
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

}  // namespace berth::execution
