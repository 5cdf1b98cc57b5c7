#include "places/ssh/remote_shell.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <charconv>
#include <utility>

namespace berth::places::ssh {
namespace {

constexpr std::size_t nonce_bytes = 16;
constexpr std::size_t status_bytes_max = 16;  // digits and newline after the end marker

// `read` reads its line byte by byte, so what follows a script on stdin is left for the next one.
// The words are those that any login shell passes on unchanged: no newline, '!' or backslash except
// in the one escape that all leave to printf.
constexpr std::string_view reader =
    "exec sh -c '"
    "LC_ALL=C;export LC_ALL;berth_newline=$(printf \"\\nx\");berth_newline=${berth_newline%x};"
    "printf \"#berth-shell\\n\";s=;"
    "while IFS= read -r l;do case $l in "
    "\"#go \"*)(eval \"$s\")</dev/null 2>&1;printf \"\\n#end %s %s\\n\" \"${l#??? }\" $?;s=;;"
    "*)s=$s$l$berth_newline;;esac;done'";

constexpr std::string_view single_reader =
    "exec sh -c '"
    "LC_ALL=C;export LC_ALL;berth_newline=$(printf \"\\nx\");berth_newline=${berth_newline%x};"
    "printf \"#berth-shell\\n\";s=;"
    "while IFS= read -r l;do [ \"$l\" = \"#go\" ]&&break;s=$s$l$berth_newline;done;eval \"$s\"'";

// A script may contain secrets, which must not remain in memory.
Task<> send_all(Session& session, std::string text) {
  const auto [error, sent] =
      co_await asio::async_write(session.process().input(), asio::buffer(text), tuple_awaitable);
  ::explicit_bzero(text.data(), text.size());
  if (!error) co_return Result<>{};
  Error why = co_await session.why_over();
  co_return std::unexpected(std::move(why));
}

}  // namespace

std::string_view RemoteShell::command() {
  return reader;
}

std::string_view script_command() {
  return single_reader;
}

Task<> send_script(Session& session, std::string_view script, std::chrono::milliseconds limit) {
  const KillTimer deadline{co_await asio::this_coro::executor, session.process(), limit};
  co_return co_await send_all(session, std::string{script} + "\n#go\n");
}

Task<ScriptEnd> RemoteShell::run(std::string_view script, RunLimits limits) {
  // A script may print anything except the end marker, which it cannot know.
  const std::string nonce = random_base64url(random_, nonce_bytes);
  const std::string ending = "\n#end " + nonce + " ";
  const KillTimer deadline{co_await asio::this_coro::executor, session_.process(), limits.time};
  over_ = true;  // until the end of this script has been seen
  std::string text;
  text.reserve(script.size() + nonce.size() + 8);
  text.append(script).append("\n#go ").append(nonce).append("\n");
  BERTH_CO_DO(co_await send_all(session_, std::move(text)));
  ScriptEnd end;
  std::vector<char> chunk(std::size_t{64} << 10);
  std::size_t looked_at = 0;
  while (true) {
    const auto [error, got] =
        co_await session_.process().output().async_read_some(asio::buffer(chunk), tuple_awaitable);
    if (error && deadline.has_struck()) {
      co_return fail(Errc::timed_out, session_.master().name() +
                                          ": the host has not answered within " +
                                          std::to_string(limits.time.count()) + " ms");
    }
    if (error) {
      Error why = co_await session_.why_over();
      co_return std::unexpected(std::move(why));
    }
    end.output.append(chunk.data(), got);
    const std::size_t at = end.output.find(ending, looked_at);
    if (at != end.output.npos && end.output.ends_with('\n')) {
      const char* const digits = end.output.data() + at + ending.size();
      std::from_chars(digits, end.output.data() + end.output.size(), end.status);
      end.output.resize(at);
      over_ = false;
      co_return end;
    }
    if (at == end.output.npos) {
      looked_at = end.output.size() - std::min(end.output.size(), ending.size());
    }
    // The limit also holds after the end marker: a hostile host knows it.
    if (end.output.size() > limits.output_bytes + ending.size() + status_bytes_max) {
      co_return fail(Errc::ssh_failed,
                     session_.master().name() + ": the host has said more than it was asked");
    }
  }
}

}  // namespace berth::places::ssh
