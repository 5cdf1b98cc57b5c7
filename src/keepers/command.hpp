#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "base/secret.hpp"
#include "base/time.hpp"
#include "core/rows/run.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

// A command, its output and its end: the values that every holder of commands shares. A keeper of
// this machine is one, a provider of sandboxes another.
namespace berth::keepers {

struct NoStdin {};
struct StdinBytes {
  Secret bytes;
};
struct StdinPipe {};  // fed by send()

struct Command {
  std::string exec_id;  // identifies one command of a lease; starting it twice runs it once
  std::vector<std::string> argv = {};
  std::map<std::string, Secret> environment = {};  // complete: nothing is inherited
  // The secret values in it, which every layer between here and the command hides.
  std::vector<Secret> secrets = {};
  std::string cwd = {};
  std::variant<NoStdin, StdinBytes, StdinPipe> input = NoStdin{};
  std::optional<core::TerminalSize> terminal = {};
  std::optional<std::int64_t> timeout_ms = {};
  std::int64_t grace_ms = 15'000;
  std::int64_t output_bytes_max = std::int64_t{4} << 30;
};

// What a place adds to every command in it.
struct PlaceRules {
  std::vector<std::string> environment = {};  // NAME=value, for names that the command does not set
  std::optional<std::int64_t> output_bytes_max = {};
};

struct Started {
  std::optional<std::int64_t> pid = {};
  Time started_at;
};

BOOST_DEFINE_ENUM_CLASS(OutputKind, out, err, note)

// A piece of output, in order of arrival. Reading continues at `next_offset`.
struct OutputPiece {
  std::uint64_t offset = 0;
  std::uint64_t next_offset = 0;
  OutputKind kind = OutputKind::out;
  Time at;
  std::string_view bytes;
};

// Receives output as it comes. It is awaited, so a slow taker slows the reading and nothing is
// lost. An error from it ends the following, not the command.
class OutputTaker {
 public:
  virtual ~OutputTaker() = default;
  virtual Task<> take(std::span<const OutputPiece> pieces) = 0;
  // The place has lost something that the command was promised; the command continues.
  virtual Task<> warned(std::string /*message*/) { co_return Result<>{}; }
};

// `lost`: the process that watched the command was killed, and the command with it. `lapsed`: the
// lease was not renewed, so the command was ended.
BOOST_DEFINE_ENUM_CLASS(Outcome, exited, signaled, timed_out, stopped, lapsed, lost)

struct Ended {
  Outcome outcome = Outcome::lost;
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};  // "SIGKILL"
  Time started_at = {};
  Time ended_at = {};
  bj::object usage = {};  // userMs, systemMs, residentBytesMax, ...
  std::int64_t bytes_over_limit = 0;
  std::int64_t bytes_lost = 0;   // not written because the disk was full
  std::int64_t left_behind = 0;  // processes that could not be killed
  std::int64_t oom_kills = 0;    // in its sandbox while it ran
};

struct EndOfInput {};
struct SignalNumber {
  int number = 0;
};
using Input = std::variant<std::string, EndOfInput, core::TerminalSize, SignalNumber>;

// What a place uses now, and has used. A value that is not counted there is 0, or absent if 0 could
// be mistaken for a real value.
struct Usage {
  std::int64_t cpu_ms = 0;
  std::int64_t memory_bytes = 0;  // current
  std::int64_t memory_bytes_peak = 0;
  std::int64_t processes = 0;
  std::int64_t processes_peak = 0;  // including threads
  std::optional<std::int64_t> read_bytes = {};
  std::optional<std::int64_t> written_bytes = {};
  std::int64_t oom_kills = 0;
};
BOOST_DESCRIBE_STRUCT(Usage, (),
                      (cpu_ms, memory_bytes, memory_bytes_peak, processes, processes_peak,
                       read_bytes, written_bytes, oom_kills))

}  // namespace berth::keepers
