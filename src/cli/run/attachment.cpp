#include "cli/run/attachment.hpp"

#include "base/async/task_group.hpp"
#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "cli/objects.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/table.hpp"
#include "cli/run/page.hpp"
#include "cli/run/raw_terminal.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ostream>

namespace berth::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t stdin_piece_bytes = std::size_t{64} << 10;
constexpr std::size_t stdin_window = core::attach_stdin_window / 4;
constexpr milliseconds first_pause{200};
constexpr milliseconds longest_pause{5'000};
constexpr std::chrono::seconds sound_connection{10};  // one that lasted this long did not fail
constexpr std::chrono::seconds slow_reader{20};

std::size_t stdin_bytes(const core::AttachRequest& request) {
  const auto* in = std::get_if<core::AttachStdin>(&request);
  return in != nullptr ? in->bytes.size() : 0;
}

// Errors that a retry would only repeat.
bool is_refusal(Errc code) {
  const ExitCode kind = exit_code_of(code);
  return kind == ExitCode::usage || kind == ExitCode::not_found || kind == ExitCode::not_allowed ||
         code == Errc::validation_failed;
}

// Errors that do not concern the requested object and may be temporary. A proxy in front of a
// restarting server answers without a code, which is read as a bug.
bool may_pass(Errc code) {
  switch (code) {
    case Errc::server_unreachable:
    case Errc::timed_out:
    case Errc::request_timed_out:
    case Errc::overloaded:
    case Errc::cancelled:
    case Errc::keeper_unreachable:
    case Errc::store_unreachable:
    case Errc::store_locked:
    case Errc::bug: return true;
    default: return false;
  }
}

// The first of a connection's tasks that ends closes the connection, so that the other ends too.
Task<> with_end(Task<> task, Socket& socket) {
  Result<> done = co_await std::move(task);
  socket.drop();
  co_return done;
}

}  // namespace

Attachment::Attachment(const Client& server, Console& console)
    : server_(server),
      console_(console),
      signals_(loop_, SIGINT, SIGTERM, SIGHUP),
      changed_(loop_, asio::steady_timer::time_point::max()) {}

Result<AttachEnd> Attachment::follow(AttachOptions wanted) {
  request_ = std::move(wanted);
  if (request_.terminal_fd) signals_.add(SIGWINCH);
  BERTH_TRY(out_, Outlet::open(loop_.get_executor(), console_.out, console_.out_fd));
  BERTH_TRY(err_, Outlet::open(loop_.get_executor(), console_.err, console_.err_fd));
  TaskGroup tasks{loop_.get_executor()};
  tasks.start("attach", run());
  loop_.run();
  show_status("");
  if (end_) return *std::move(end_);
  return fail(Errc::bug, "run " + request_.run_id + ": the attachment ended without an end");
}

Task<> Attachment::run() {
  using namespace asio::experimental::awaitable_operators;
  co_await (connect_again_and_again() || watch_signals() || read_stdin());
  co_return Result<>{};
}

Task<> Attachment::connect_again_and_again() {
  patience_ends_ = steady_clock::now() + request_.reattach_for;
  pause_ = first_pause;
  while (!end_) {
    const std::string own = "/api/heartbeat-runs/" + request_.run_id + "/attach?";
    const std::string path =
        (request_.path ? *request_.path + "&" : own) + "offset=" + std::to_string(offset_);
    const auto connected_at = steady_clock::now();
    auto socket =
        co_await open_socket(server_.server(), server_.token(), path, request_.answer_limit);
    if (socket) {
      begin_connection();
      co_await serve(**socket);
    } else {
      failure_ = std::move(socket).error();
    }
    if (end_ || !may_try_again(connected_at)) break;
    asio::steady_timer pause{loop_, pause_};
    pause_ = std::min(pause_ * 2, longest_pause);
    co_await pause.async_wait(as_pair);
  }
  co_return Result<>{};
}

// Reports that the connection is lost, or that a retry is useless.
bool Attachment::may_try_again(steady_clock::time_point connected_at) {
  const auto now = steady_clock::now();
  // A run continues whatever happens to its log. A terminal begins with the connection, so the
  // server's error is final.
  const bool is_answered = is_refusal(failure_.code) || (request_.path && !may_pass(failure_.code));
  if (is_answered || request_.on_break == OnBreak::end) {
    end_ = std::unexpected(std::exchange(told_, {}).value_or(failure_));
    return false;
  }
  if (now - connected_at >= sound_connection) {
    patience_ends_ = now + request_.reattach_for;
    pause_ = first_pause;
  }
  if (now >= patience_ends_) {
    end_ =
        fail(failure_.code, "run " + request_.run_id + ": " + failure_.message,
             "the run goes on; 'berth run logs -f " + request_.run_id + "' attaches to it again");
    return false;
  }
  if (!was_broken_ && !was_slow_) remark("the connection is lost (" + failure_.message + ")");
  was_broken_ = !was_slow_;
  was_slow_ = false;
  return true;
}

void Attachment::begin_connection() {
  if (in_flight_bytes_ > 0) {
    remark(std::to_string(in_flight_bytes_) +
           " bytes of standard input were on their way and may be lost");
    in_flight_bytes_ = 0;
  }
  if (std::exchange(was_broken_, false)) remark("attached again");
  if (cancel_wanted_) outbox_.emplace_front(core::AttachCancel{});
  changed_.cancel();
}

Task<> Attachment::serve(Socket& socket) {
  using namespace asio::experimental::awaitable_operators;
  co_await (with_end(read_frames(socket), socket) || with_end(write_requests(socket), socket));
  co_return Result<>{};
}

Task<> Attachment::read_frames(Socket& socket) {
  while (!end_) {
    auto message = co_await socket.receive();
    if (!message) {
      failure_ = std::move(message).error();
      break;
    }
    const Result<> taken = co_await take(*std::move(message));
    if (!taken) end_ = std::unexpected(taken.error());
  }
  co_return Result<>{};
}

Task<> Attachment::take(SocketMessage message) {
  if (const auto error = std::exchange(told_, {})) remark(error->message);
  if (message.kind == SocketMessage::Kind::text) {
    BERTH_CO_TRY(const bj::value news, parse_json(message.bytes));
    take_news(news);
    co_return Result<>{};
  }
  BERTH_CO_TRY(const core::OutputFrame frame, core::parse_output_frame(message.bytes));
  BERTH_CO_DO(co_await show(frame));
  offset_ = frame.next_offset;
  patience_ends_ = steady_clock::now() + request_.reattach_for;
  pause_ = first_pause;
  if (request_.until && offset_ >= *request_.until) end_ = AllShown{};
  co_return Result<>{};
}

// The frame's bytes belong to the caller, which waits.
Task<> Attachment::show(core::OutputFrame frame) {
  if (request_.only && frame.stream != *request_.only) co_return Result<>{};
  show_status("");
  const bool own_out = frame.stream == core::OutputStream::stdout_;
  const bool to_out = request_.output_to == OutputTo::all_to_out ||
                      (request_.output_to == OutputTo::each_its_own && own_out);
  std::string rendered;
  const bool is_rendered = own_out && request_.render;
  if (is_rendered) rendered = request_.render(frame.bytes);
  const std::string_view bytes = is_rendered ? rendered : frame.bytes;
  const auto began = steady_clock::now();
  Result<> written = co_await (to_out ? out_ : err_)->write(bytes);
  was_slow_ = steady_clock::now() - began >= slow_reader;
  if (written || written.error().code != Errc::cancelled) co_return written;
  end_ = NobodyReads{};
  co_return Result<>{};
}

void Attachment::take_news(const bj::value& news) {
  const auto type = parse_name<core::AttachNews>(text_of(news, "type"));
  if (!type) return;  // a newer server knows more types
  const auto run = peek<bj::value>(news, request_.path ? "exec" : "run");
  switch (*type) {
    case core::AttachNews::state:
      if (run) show_status(waiting_line(*run));
      return;
    case core::AttachNews::ended:
      if (run) end_ = RunEnded{*run};
      return;
    case core::AttachNews::stdin_taken: {
      const std::int64_t count = peek<std::int64_t>(news, "bytes").value_or(0);
      in_flight_bytes_ -= std::min(in_flight_bytes_, static_cast<std::size_t>(count));
      changed_.cancel();
      return;
    }
    case core::AttachNews::error:
      // A command need not read all of its input: its end shows that it is over.
      for (const Errc over : {Errc::run_not_running, Errc::exec_not_found}) {
        if (text_of(news, "code") == name_of(over)) return;
      }
      if (request_.on_break == OnBreak::end) {
        const auto code = parse_errc(text_of(news, "code"));
        told_ = Error{code.value_or(Errc::io_failed), text_of(news, "error")};
      } else if (const std::string error = text_of(news, "error"); said_.insert(error).second) {
        remark(error);
      }
      return;
  }
}

Task<> Attachment::write_requests(Socket& socket) {
  while (true) {
    while (outbox_.empty()) co_await changed_.async_wait(as_pair);
    const std::size_t bytes = stdin_bytes(outbox_.front());
    std::string text = core::to_text(outbox_.front());
    outbox_.pop_front();
    // From here on its progress is unknown until the server reports it.
    unsent_bytes_ -= bytes;
    in_flight_bytes_ += bytes;
    Result<> sent = co_await socket.send(std::move(text));
    if (!sent) {
      failure_ = std::move(sent).error();
      co_return Result<>{};
    }
  }
}

void Attachment::ask(core::AttachRequest request) {
  unsent_bytes_ += stdin_bytes(request);
  outbox_.push_back(std::move(request));
  changed_.cancel();
}

// Never ends by itself: input goes to the outbox, and the run outlives its input.
Task<> Attachment::read_stdin() {
  if (request_.stdin_fd) {
    const int fd = *request_.stdin_fd;
    auto ready = Readiness::open(loop_.get_executor(), fd, Readiness::For::reading);
    std::string piece(stdin_piece_bytes, '\0');
    ssize_t got = ready ? 1 : 0;
    while (got > 0) {
      while (window_used() >= stdin_window) co_await changed_.async_wait(as_pair);
      BERTH_CO_DO(co_await ready->wait());
      got = ::read(fd, piece.data(), piece.size());
      if (got > 0) ask(core::AttachStdin{piece.substr(0, static_cast<std::size_t>(got))});
      if (got < 0 && errno == EINTR) got = 1;
    }
    ask(core::AttachStdinEnd{});
  }
  asio::steady_timer never{loop_, asio::steady_timer::time_point::max()};
  co_await never.async_wait(as_pair);
  co_return Result<>{};
}

Task<> Attachment::watch_signals() {
  while (!end_) {
    const auto [error, signal] = co_await signals_.async_wait(as_pair);
    if (error) break;
    interrupt(signal);
  }
  co_return Result<>{};
}

void Attachment::interrupt(int signal) {
  if (signal == SIGWINCH) {
    ask(terminal_size(*request_.terminal_fd));
  } else if (request_.on_interrupt == OnInterrupt::leave || std::exchange(cancel_wanted_, true)) {
    end_ = Left{signal};
  } else {
    remark("cancelling run " + request_.run_id + "; a second Ctrl-C stops waiting for it");
    ask(core::AttachCancel{});
  }
}

void Attachment::remark(const std::string& text) {
  if (request_.remarks == Remarks::silent) return;
  show_status("");
  // A raw terminal does not return to the start of a line by itself.
  console_.err << "berth: " << printable(text) << (request_.terminal_fd ? "\r\n" : "\n")
               << std::flush;
}

void Attachment::show_status(const std::string& line) {
  if (!console_.err_is_terminal || request_.remarks == Remarks::silent || line == status_) return;
  const auto width = static_cast<std::size_t>(std::max(console_.columns, 20)) - 1;
  console_.err << "\r\x1b[2K" << clipped(printable(line), width) << std::flush;
  status_ = line;
}

}  // namespace berth::cli
