#include "http/routes/attachment.hpp"

#include "core/output/attach.hpp"
#include "engine/live_command.hpp"
#include "http/routes/attach_news.hpp"
#include "http/routes/stdin_queue.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <span>

namespace berth::http {
namespace {

// A client that reads slowly holds one, and the output that it was made of.
constexpr std::size_t frame_bytes_max = std::size_t{128} << 10;
// How often somebody who waits in the queue learns of a new position.
constexpr std::chrono::seconds progress_interval{2};

struct StateNews {
  core::AttachNews type;
  engine::RunView run;
};
BOOST_DESCRIBE_STRUCT(StateNews, (), (type, run))

bool waits(const engine::RunView& run) {
  return run.status == core::RunState::queued || run.status == core::RunState::starting;
}

// Three tasks share it: one sends output, one reads requests, and one holds stdin for the command.
// Requests are read all the time, so that pings are answered and a disconnect is noticed, however
// long stdin waits.
class Attachment {
 public:
  Attachment(engine::Runs& runs, core::Call call, core::RunId run, Socket& socket,
             const asio::any_io_executor& executor)
      : runs_(runs),
        call_(std::move(call)),
        run_(std::move(run)),
        socket_(socket),
        news_(executor, asio::steady_timer::time_point::max()) {}

  Task<> serve(engine::RunView seen, std::int64_t offset) {
    using namespace asio::experimental::awaitable_operators;
    const auto ended =
        co_await (tell(std::move(seen), offset) || read_requests() || deliver_stdin());
    co_return std::visit([](const Result<>& first) { return first; }, ended);
  }

 private:
  Task<> tell(engine::RunView seen, std::int64_t offset) {
    Result<> told = co_await tell_progress(std::move(seen));
    if (told) told = co_await tell_output(offset);
    if (!told && told.error().code != Errc::cancelled) co_await tell_error(told.error());
    // The peer's close frame ends the reading of requests in an orderly way.
    const auto code = told ? CloseCode::normal : CloseCode::internal_error;
    const std::string reason{told ? "" : name_of(told.error().code)};
    co_await socket_.close(code, reason);
    co_return told;
  }

  Task<> tell_progress(engine::RunView seen) {
    std::string last;
    while (true) {
      std::string text = encode_text(StateNews{core::AttachNews::state, seen});
      if (text != last) BERTH_CO_DO(co_await socket_.send({.bytes = text}));
      if (!waits(seen)) break;
      last = std::move(text);
      BERTH_CO_TRY(seen, co_await runs_.get(call_, run_, progress_interval));
    }
    executing_ = true;
    news_.cancel();
    co_return Result<>{};
  }

  Task<> tell_output(std::int64_t offset) {
    bool complete = false;
    while (!complete) {
      const auto news = co_await runs_.follow(call_, run_, offset);
      if (!news && news.error().code == Errc::log_unavailable) {
        BERTH_CO_TRY(complete, co_await wait_without_output(news.error()));
        continue;
      }
      if (!news) co_return std::unexpected(news.error());
      BERTH_CO_DO(co_await send_pieces(news->block.pieces, offset));
      offset = std::max(offset, news->next_offset);
      complete = news->complete;
    }
    BERTH_CO_TRY(engine::RunView last,
                 co_await runs_.get(call_, run_, std::chrono::milliseconds{0}));
    const StateNews ended{core::AttachNews::ended, std::move(last)};
    co_return co_await socket_.send({.bytes = encode_text(ended)});
  }

  // The output is on another server, and the end is in the store. The client gets that server's
  // address once. Then this waits a while, because that server may stop and this one may take over
  // the run. Returns whether the run is over.
  Task<bool> wait_without_output(Error why) {
    if (!std::exchange(is_elsewhere_, true)) BERTH_CO_DO(co_await tell_error(std::move(why)));
    BERTH_CO_TRY(const engine::RunView seen,
                 co_await runs_.get(call_, run_, progress_interval, engine::RunMoment::end));
    co_return core::is_final(seen.status);
  }

  // Adjacent records of one stream are sent together; what the client already has is left out.
  Task<> send_pieces(std::span<const core::OutputRecord> pieces, std::int64_t offset) {
    std::string bytes;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const core::OutputRecord& piece = pieces[i];
      std::string_view rest = piece.bytes;
      const std::int64_t known = std::max<std::int64_t>(offset - piece.offset, 0);
      rest.remove_prefix(std::min(rest.size(), static_cast<std::size_t>(known)));
      while (!rest.empty()) {
        const std::string_view some = rest.substr(0, frame_bytes_max - bytes.size());
        bytes += some;
        rest.remove_prefix(some.size());
        const bool last = i + 1 == pieces.size() || pieces[i + 1].stream != piece.stream;
        if (bytes.size() < frame_bytes_max && (!rest.empty() || !last)) continue;
        const auto end = piece.offset + static_cast<std::int64_t>(piece.bytes.size());
        Message frame{.kind = Message::Kind::binary,
                      .bytes = core::to_frame(
                          {piece.stream, end - static_cast<std::int64_t>(rest.size()), bytes})};
        bytes.clear();
        BERTH_CO_DO(co_await socket_.send(std::move(frame)));
      }
    }
    co_return Result<>{};
  }

  Task<> tell_error(Error error) {
    co_return co_await socket_.send({.bytes = encode_error(error)});
  }

  // Ends when the client has disconnected. An invalid request is answered with an error and
  // dropped.
  Task<> read_requests() {
    while (true) {
      BERTH_CO_TRY(const std::optional<Message> message, co_await socket_.receive());
      if (!message) co_return Result<>{};
      const Result<> done = co_await carry_out(*message);
      if (!done) BERTH_CO_DO(co_await tell_error(done.error()));
    }
  }

  Task<> carry_out(const Message& message) {
    if (message.kind != Message::Kind::text) {
      co_return fail(Errc::validation_failed, "the frame is binary",
                     "a client sends JSON in text frames");
    }
    BERTH_CO_TRY(core::AttachRequest request, core::parse_attach_request(message.bytes));
    BERTH_CO_DO(core::authorize(call_.who, core::Permission::company_operate));
    if (auto* in = std::get_if<core::AttachStdin>(&request)) {
      co_return keep(std::move(in->bytes));
    }
    if (std::holds_alternative<core::AttachStdinEnd>(request)) co_return keep(engine::EndOfInput{});
    if (const auto* size = std::get_if<core::TerminalSize>(&request)) {
      co_return co_await runs_.send(call_, run_, *size);
    }
    if (const auto* signal = std::get_if<core::AttachSignal>(&request)) {
      co_return co_await runs_.send(call_, run_, engine::SignalNumber{signal->number});
    }
    BERTH_CO_DO(co_await runs_.cancel(call_, run_));
    co_return Result<>{};
  }

  Result<> keep(StdinQueue::Piece piece) {
    if (!waiting_.keep(std::move(piece))) {
      return fail(Errc::overloaded,
                  "stdin of run " + run_.str() + ": the command does not read what is sent",
                  "wait for stdin_taken before sending more");
    }
    news_.cancel();
    return {};
  }

  Task<> deliver_stdin() {
    while (true) {
      while (!executing_ || waiting_.empty()) {
        co_await news_.async_wait(asio::as_tuple(asio::use_awaitable));
      }
      StdinQueue::Piece piece = waiting_.take();
      const std::size_t size = StdinQueue::bytes_of(piece);
      Result<> sent = co_await runs_.send(call_, run_, input_of(std::move(piece)));
      waiting_.settle();
      if (!sent) BERTH_CO_DO(co_await tell_error(sent.error()));
      const TakenNews news{.bytes = static_cast<std::int64_t>(size)};
      BERTH_CO_DO(co_await socket_.send({.bytes = encode_text(news)}));
    }
  }

  static engine::RunInputPiece input_of(StdinQueue::Piece piece) {
    return std::visit([](auto& some) { return engine::RunInputPiece{std::move(some)}; }, piece);
  }

  engine::Runs& runs_;
  core::Call call_;
  core::RunId run_;
  Socket& socket_;
  StdinQueue waiting_;
  bool is_elsewhere_ = false;  // the client got the name of the server with the output
  bool executing_ = false;     // from now on the command accepts input
  asio::steady_timer news_;    // never expires; cancelled when there is something to deliver
};

}  // namespace

Task<> attach(engine::Runs& runs, core::Call call, core::RunId run, std::int64_t offset,
              Socket& socket) {
  // Before the upgrade is answered, so that a missing run is a plain 404.
  BERTH_CO_TRY(engine::RunView seen, co_await runs.get(call, run, std::chrono::milliseconds{0}));
  Attachment attachment{runs, std::move(call), std::move(run), socket,
                        co_await asio::this_coro::executor};
  co_return co_await attachment.serve(std::move(seen), offset);
}

}  // namespace berth::http
