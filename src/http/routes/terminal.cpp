#include "http/routes/terminal.hpp"

#include "http/routes/stdin_queue.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::http {
namespace {

// Output goes out, requests come in, and stdin waits for a command that reads, each in a task of
// its own: a command that does not read must not keep signals and sizes from it.
class TerminalSession final : public places::OutputTaker {
 public:
  TerminalSession(places::LiveCommandPtr command, TerminalFrames& frames, Socket& socket,
                  const asio::any_io_executor& executor)
      : command_(std::move(command)),
        frames_(frames),
        socket_(socket),
        news_(executor, asio::steady_timer::time_point::max()) {}

  Task<> serve(std::uint64_t offset, OnLeave on_leave) {
    using namespace asio::experimental::awaitable_operators;
    BERTH_CO_DO(co_await say(frames_.ready()));
    const auto ended = co_await (tell(offset) || read_requests() || deliver_stdin());
    const Result<> how = std::visit([](const Result<>& first) { return first; }, ended);
    const bool has_told = ended.index() == 0 && how;
    if (!has_told && on_leave == OnLeave::is_cancelled) BERTH_CO_DO(co_await command_->cancel());
    co_return how;
  }

  Task<> take(std::span<const places::OutputPiece> pieces) override {
    for (const places::OutputPiece& piece : pieces) {
      if (piece.kind == places::OutputKind::note) continue;
      BERTH_CO_DO(co_await say(frames_.output(piece)));
    }
    co_return Result<>{};
  }

 private:
  Task<> tell(std::uint64_t offset) {
    const Result<places::Ended> ended = co_await command_->follow(offset, *this);
    if (!ended) {
      if (ended.error().code != Errc::cancelled) co_await tell_error(ended.error());
      co_await socket_.close(CloseCode::internal_error, std::string{name_of(ended.error().code)});
      co_return std::unexpected(ended.error());
    }
    BERTH_CO_DO(co_await socket_.send(frames_.ended(command_->id(), *ended)));
    co_return co_await socket_.close(CloseCode::normal, "");
  }

  Task<> say(std::optional<Message> message) {
    if (!message) co_return Result<>{};
    co_return co_await socket_.send(*std::move(message));
  }

  Task<> tell_error(Error error) { co_return co_await socket_.send(frames_.failed(error)); }

  Task<> read_requests() {
    while (true) {
      BERTH_CO_TRY(const std::optional<Message> message, co_await socket_.receive());
      if (!message) co_return Result<>{};
      const Result<> done = co_await carry_out(*message);
      if (!done) BERTH_CO_DO(co_await tell_error(done.error()));
    }
  }

  Task<> carry_out(const Message& message) {
    BERTH_CO_TRY(core::AttachRequest request, frames_.request(message));
    if (auto* in = std::get_if<core::AttachStdin>(&request)) {
      co_return keep(std::move(in->bytes));
    }
    if (std::holds_alternative<core::AttachStdinEnd>(request)) {
      co_return keep(places::EndOfInput{});
    }
    if (const auto* size = std::get_if<core::TerminalSize>(&request)) {
      co_return co_await command_->send(*size);
    }
    if (const auto* signal = std::get_if<core::AttachSignal>(&request)) {
      co_return co_await command_->send(places::SignalNumber{signal->number});
    }
    co_return co_await command_->cancel();
  }

  Result<> keep(StdinQueue::Piece piece) {
    if (!waiting_.keep(std::move(piece))) {
      return fail(Errc::overloaded, "the command does not read what is sent",
                  "wait for stdin_taken before sending more");
    }
    news_.cancel();
    return {};
  }

  Task<> deliver_stdin() {
    while (true) {
      while (waiting_.empty()) co_await news_.async_wait(asio::as_tuple(asio::use_awaitable));
      StdinQueue::Piece piece = waiting_.take();
      const std::size_t bytes = StdinQueue::bytes_of(piece);
      const Result<> sent = co_await command_->send(input_of(std::move(piece)));
      waiting_.settle();
      if (!sent) BERTH_CO_DO(co_await tell_error(sent.error()));
      BERTH_CO_DO(co_await say(frames_.taken(bytes)));
    }
  }

  static places::Input input_of(StdinQueue::Piece piece) {
    return std::visit([](auto& some) { return places::Input{std::move(some)}; }, piece);
  }

  places::LiveCommandPtr command_;
  TerminalFrames& frames_;
  Socket& socket_;
  StdinQueue waiting_;
  asio::steady_timer news_;  // never expires; cancelled when there is something to deliver
};

}  // namespace

Task<> serve_terminal(places::LiveCommandPtr command, std::uint64_t offset, TerminalFrames& frames,
                      Socket& socket, OnLeave on_leave) {
  TerminalSession session{std::move(command), frames, socket, co_await asio::this_coro::executor};
  co_return co_await session.serve(offset, on_leave);
}

}  // namespace berth::http
