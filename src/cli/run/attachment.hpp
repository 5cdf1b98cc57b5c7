#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "cli/net/client.hpp"
#include "cli/print/console.hpp"
#include "cli/run/outlet.hpp"
#include "cli/run/socket.hpp"
#include "core/output/attach.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>

namespace berth::cli {

// What Ctrl-C does: a caller that started a run cancels it, one that only watches leaves.
enum class OnInterrupt { cancel_run, leave };
// Where the output goes: each stream to its own, both to stdout, or both to stderr.
enum class OutputTo { each_its_own, all_to_out, all_to_err };
enum class Remarks { spoken, silent };
// Stored output can be read on after the connection broke; without it, the command is over.
enum class OnBreak { attach_again, end };

struct AttachOptions {
  std::string run_id = {};
  // For a socket with the same protocol that is not a run's, with a query; absent: the run's own.
  std::optional<std::string> path = {};
  OnInterrupt on_interrupt = OnInterrupt::leave;
  OutputTo output_to = OutputTo::each_its_own;
  std::optional<core::OutputStream> only = {};  // the other stream is omitted
  std::optional<std::int64_t> until = {};       // leaves once this much of the log was shown
  std::optional<int> stdin_fd = {};             // read from here as the command's stdin
  std::optional<int> terminal_fd = {};          // in raw mode; its size changes are sent
  // Rewrites the command's stdout before it is shown; holds back incomplete lines.
  std::function<std::string(std::string_view)> render = {};
  Remarks remarks = Remarks::spoken;
  OnBreak on_break = OnBreak::attach_again;
  std::chrono::seconds answer_limit = usual_answer_limit;  // until the server accepts the socket
  // How long a broken connection is retried without success.
  std::chrono::milliseconds reattach_for{120'000};
};

struct RunEnded {
  bj::value run;
};
struct AllShown {};  // up to `until`
struct Left {
  int signal = 0;  // the one that ended it
};
struct NobodyReads {};  // stdout is closed
using AttachEnd = std::variant<RunEnded, AllShown, Left, NobodyReads>;

// Attaches a user or a script to a run: output comes here, stdin and signals go there. A broken
// connection is restored at the offset where the output stopped. From construction on, signals are
// held, so that none gets lost between the start of a run and its first output. For one run.
class Attachment {
 public:
  Attachment(const Client& server, Console& console);

  Result<AttachEnd> follow(AttachOptions wanted);

 private:
  Task<> run();
  Task<> connect_again_and_again();
  Task<> serve(Socket& socket);
  Task<> read_frames(Socket& socket);
  Task<> take(SocketMessage message);
  Task<> show(core::OutputFrame frame);
  void take_news(const bj::value& news);
  Task<> write_requests(Socket& socket);
  Task<> read_stdin();
  Task<> watch_signals();
  void interrupt(int signal);
  void ask(core::AttachRequest request);
  void begin_connection();
  bool may_try_again(std::chrono::steady_clock::time_point connected_at);

  void remark(const std::string& text);
  void show_status(const std::string& line);
  std::size_t window_used() const { return unsent_bytes_ + in_flight_bytes_; }

  const Client& server_;
  Console& console_;
  asio::io_context loop_{1};
  asio::signal_set signals_;
  asio::steady_timer changed_;  // never expires; cancelled when something below has changed
  AttachOptions request_;
  std::optional<Outlet> out_;
  std::optional<Outlet> err_;

  std::optional<Result<AttachEnd>> end_;
  std::int64_t offset_ = 0;  // all output before this offset was shown
  std::deque<core::AttachRequest> outbox_;
  std::size_t unsent_bytes_ = 0;     // of stdin, in the outbox
  std::size_t in_flight_bytes_ = 0;  // of stdin, sent and not yet accepted
  bool cancel_wanted_ = false;

  Error failure_ = {};  // of the last connection
  // The server's latest error; the last one explains why the connection ended.
  std::optional<Error> told_ = {};
  std::set<std::string> said_;  // errors of the run: each is shown once, however often it arrives
  std::chrono::steady_clock::time_point patience_ends_ = {};
  std::chrono::milliseconds pause_ = {};
  bool was_broken_ = false;
  bool was_slow_ = false;  // the reader of our output was slow, so the server dropped us
  std::string status_;     // the status line on the terminal
};

}  // namespace berth::cli
