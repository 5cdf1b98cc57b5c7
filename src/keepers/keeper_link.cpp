#include "keepers/keeper_link.hpp"

#include "base/async/event.hpp"
#include "keeper/protocol/output.hpp"
#include "keepers/keeper_values.hpp"
#include "keepers/output_records.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <map>
#include <utility>

namespace berth::keepers {
namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 10;
// How far a taker may fall behind before the link stops reading. More than the largest record,
// because a partial record cannot be taken.
constexpr std::size_t behind_bytes_max = 2 * keeper::record_bytes_max;
// Connection never assigns this id.
constexpr std::uint64_t open_request = UINT64_MAX;

// The bytes of an Output frame in place: decoding it would copy them.
Result<std::string_view> output_bytes(const keeper::Frame& frame) {
  constexpr std::size_t before = sizeof(std::uint64_t) + sizeof(std::uint32_t);
  keeper::WireReader reader{frame.message};
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  if (!reader.get(offset) || !reader.get(size) || frame.message.size() != before + size) {
    return keeper::malformed(frame.verb);
  }
  return frame.message.substr(before);
}

Error refusal(const keeper::Frame& frame) {
  const Result<keeper::Refused> refused = keeper::decode<keeper::Refused>(frame);
  return refused ? keeper::as_error(*refused) : refused.error();
}

}  // namespace

// Shared with the running coroutines, so that they survive the link that started them.
struct KeeperLink::State {
  State(const asio::any_io_executor& executor, TaskGroup& task_group, Ends ends)
      : tasks(task_group),
        name(std::move(ends.name)),
        in(executor, ends.in.release()),
        out(executor),
        room(executor),
        over(executor) {
    if (ends.out) out.assign(ends.out.release());
    writer().non_blocking(true);
    if (ends.open) keeper::append_frame(opening, open_request, *ends.open);
  }

  asio::posix::stream_descriptor& writer() { return out.is_open() ? out : in; }
  bool is_behind(std::uint64_t id) const;
  void break_off(Error why);
  void shut() {
    break_off({Errc::keeper_unreachable, name + ": the link to the keeper is closed"});
  }
  // Sends what can be sent without waiting; the rest waits for room.
  boost::system::error_code write_some();

  TaskGroup& tasks;
  std::string name;
  asio::posix::stream_descriptor in;
  asio::posix::stream_descriptor out;
  std::string opening;  // sent before the connection's own bytes
  keeper::Connection connection;
  std::map<std::uint64_t, Waiting*> waiting;
  std::map<std::uint64_t, Following*> following;
  std::optional<Error> broken;
  bool writing = false;
  bool read_to_end = false;
  Event room;  // notified when a taker has caught up
  Event over;  // notified when the reader has ended
};

// A request that waits for its answer; lives in the caller's coroutine frame.
class KeeperLink::Waiting {
 public:
  Waiting(std::shared_ptr<State> state, std::uint64_t id)
      : event(state->in.get_executor()), state_(std::move(state)), id_(id) {
    state_->waiting.emplace(id_, this);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { state_->waiting.erase(id_); }

  void take(const keeper::Frame& frame) {
    answer = Answered{.verb = frame.verb, .message = std::string{frame.message}};
    if (frame.verb == keeper::Verb::refused) answer = std::unexpected(refusal(frame));
    event.notify();
  }

  Event event;
  std::optional<Result<Answered>> answer;

 private:
  std::shared_ptr<State> state_;
  std::uint64_t id_;
};

// An output that is being followed.
class KeeperLink::Following {
 public:
  Following(std::shared_ptr<State> state, std::uint64_t id)
      : event(state->in.get_executor()), state_(std::move(state)), id_(id) {
    state_->following.emplace(id_, this);
  }
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;
  ~Following() {
    state_->following.erase(id_);
    state_->room.notify();
  }

  Result<> take(const keeper::Frame& frame) {
    if (frame.verb == keeper::Verb::output) {
      BERTH_TRY(const std::string_view bytes, output_bytes(frame));
      arrived += bytes;
      has_news = true;
    } else if (frame.verb == keeper::Verb::refused) {
      end = std::unexpected(refusal(frame));
    } else {
      end = keeper::decode<keeper::Ended>(frame);
    }
    event.notify();
    return {};
  }

  Event event;
  std::string arrived;  // begins at a record
  bool has_news = false;
  std::optional<Result<keeper::Ended>> end;

 private:
  std::shared_ptr<State> state_;
  std::uint64_t id_;
};

bool KeeperLink::State::is_behind(std::uint64_t id) const {
  const auto found = following.find(id);
  return found != following.end() && !broken && found->second->arrived.size() >= behind_bytes_max;
}

void KeeperLink::State::break_off(Error why) {
  if (!broken) broken = std::move(why);
  boost::system::error_code ignored;
  in.close(ignored);
  out.close(ignored);
  for (const auto& [id, request] : waiting) {
    if (!request->answer) request->answer = std::unexpected(*broken);
    request->event.notify();
  }
  for (const auto& [id, output] : following) {
    if (!output->end) output->end = std::unexpected(*broken);
    output->event.notify();
  }
  room.notify();
}

boost::system::error_code KeeperLink::State::write_some() {
  boost::system::error_code error;
  while (!error && !opening.empty()) {
    opening.erase(0, writer().write_some(asio::buffer(opening), error));
  }
  while (!error && !connection.outgoing().empty()) {
    const std::string_view bytes = connection.outgoing();
    connection.sent(writer().write_some(asio::buffer(bytes.data(), bytes.size()), error));
  }
  return error;
}

// However the reader ends, this releases everything that waits for it.
class KeeperLink::ReaderEnd {
 public:
  explicit ReaderEnd(State& state) : state_(state) {}
  ReaderEnd(const ReaderEnd&) = delete;
  ReaderEnd& operator=(const ReaderEnd&) = delete;
  ~ReaderEnd() {
    state_.break_off({Errc::keeper_unreachable,
                      state_.name + ": the connection to the keeper broke",
                      "its files say whether and how it ended"});
    state_.read_to_end = true;
    state_.over.notify();
  }

 private:
  State& state_;
};

KeeperLink::KeeperLink(const asio::any_io_executor& executor, TaskGroup& tasks, Ends ends)
    : state_(std::make_shared<State>(executor, tasks, std::move(ends))) {
  tasks.start("keeper.read", read(state_));
}

KeeperLink::~KeeperLink() {
  if (state_) state_->shut();
}

const std::optional<Error>& KeeperLink::broken() const {
  return state_->broken;
}

keeper::Connection& KeeperLink::connection_of(State& state) {
  return state.connection;
}

// Usually the other side has room, and no task is needed to wait for it. All other errors are left
// to the reader: what the other side sent before it closed still has to be read, and explains more
// than EPIPE.
void KeeperLink::flush(const std::shared_ptr<State>& state) {
  if (state->writing || state->broken) return;
  if (state->write_some() != asio::error::would_block) return;
  state->writing = true;
  state->tasks.start("keeper.write", write(state));
}

Task<> KeeperLink::write(std::shared_ptr<State> state) {
  while (!state->broken) {
    const auto [error] = co_await state->writer().async_wait(
        asio::posix::descriptor_base::wait_write, asio::as_tuple(asio::use_awaitable));
    if (error || state->broken || state->write_some() != asio::error::would_block) break;
  }
  state->writing = false;
  co_return Result<>{};
}

Task<> KeeperLink::read(std::shared_ptr<State> state) {
  const ReaderEnd end{*state};
  // Not a vector, which would touch every page even on a link with little traffic.
  const auto block = std::make_unique_for_overwrite<char[]>(read_bytes);
  while (!state->broken) {
    const auto [error, got] = co_await state->in.async_read_some(
        asio::buffer(block.get(), read_bytes), asio::as_tuple(asio::use_awaitable));
    if (error) break;
    state->connection.received({block.get(), got});
    if (const Result<> handed = co_await hand_out(*state); !handed) {
      state->break_off(handed.error());
    }
  }
  co_return Result<>{};
}

Task<> KeeperLink::hand_out(State& state) {
  while (!state.broken) {
    BERTH_CO_TRY(const std::optional<keeper::Frame> frame, state.connection.next());
    if (!frame) break;
    const std::uint64_t id = frame->request;
    if (const auto asked = state.waiting.find(id); asked != state.waiting.end()) {
      asked->second->take(*frame);
    } else if (const auto output = state.following.find(id); output != state.following.end()) {
      BERTH_CO_DO(output->second->take(*frame));
    } else if (id == open_request && frame->verb == keeper::Verb::refused) {
      co_return std::unexpected(refusal(*frame));
    }
    // Looked up again after each wait: the follower may have left.
    while (state.is_behind(id)) BERTH_CO_DO(co_await state.room.wait());
  }
  co_return Result<>{};
}

Task<KeeperLink::Answered> KeeperLink::answer_to(std::shared_ptr<State> state, std::uint64_t id,
                                                 Limit limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  Waiting waiting{state, id};
  flush(state);
  while (true) {
    if (waiting.answer) co_return *std::move(waiting.answer);
    if (state->broken) co_return std::unexpected(*state->broken);
    if (std::chrono::steady_clock::now() >= until) {
      co_return fail(Errc::timed_out, state->name + ": the keeper has not answered within " +
                                          std::to_string(limit.count()) + " ms");
    }
    BERTH_CO_DO(co_await waiting.event.wait_until(until));
  }
}

Task<Ended> KeeperLink::follow_on(std::shared_ptr<State> state, std::string exec_id,
                                  std::uint64_t offset, OutputTaker& taker) {
  const std::uint64_t id =
      state->connection.send(keeper::Attach{.exec_id = exec_id, .offset = offset});
  Following output{state, id};
  flush(state);
  std::string held;
  while (true) {
    if (output.has_news) {
      output.has_news = false;
      // The reader fills one string while the taker has the other.
      held.swap(output.arrived);
      BERTH_CO_TRY(const CutRecords cut, cut_records(held, offset));
      output.arrived.assign(held, cut.used);
      offset += cut.used;
      state->room.notify();
      if (!cut.pieces.empty()) BERTH_CO_DO(co_await taker.take(cut.pieces));
    } else if (output.end) {
      BERTH_CO_TRY(const keeper::Ended ended, *std::move(output.end));
      co_return ended_of(ended);
    } else if (state->broken) {
      co_return std::unexpected(*state->broken);
    } else {
      BERTH_CO_DO(co_await output.event.wait());
    }
  }
}

Task<> KeeperLink::wait_for_end_on(std::shared_ptr<State> state, Limit limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!state->read_to_end) {
    if (std::chrono::steady_clock::now() >= until) {
      co_return fail(Errc::timed_out, state->name + ": the keeper has not ended within " +
                                          std::to_string(limit.count()) + " ms");
    }
    BERTH_CO_DO(co_await state->over.wait_until(until));
  }
  co_return Result<>{};
}

Task<> KeeperLink::close_on(std::shared_ptr<State> state) {
  state->shut();
  while (!state->read_to_end) BERTH_CO_DO(co_await state->over.wait());
  co_return Result<>{};
}

}  // namespace berth::keepers
