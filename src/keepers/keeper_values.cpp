#include "keepers/keeper_values.hpp"

#include "keeper/protocol/protocol.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace berth::keepers {
namespace {

void wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
}

// Sizes beyond a terminal's maximum are clamped, not wrapped.
std::uint16_t terminal_side(std::int64_t cells) {
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(cells, 1, UINT16_MAX));
}

std::uint64_t not_negative(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

Time time_of(std::int64_t time_us) {
  return Time{time_us / 1000};
}

// `failed_to_start` and `running` are not ends; asking for the end of such a command means that it
// was lost.
Outcome outcome_of(keeper::Outcome outcome) {
  switch (outcome) {
    case keeper::Outcome::exited: return Outcome::exited;
    case keeper::Outcome::signaled: return Outcome::signaled;
    case keeper::Outcome::timed_out: return Outcome::timed_out;
    case keeper::Outcome::lapsed: return Outcome::lapsed;
    case keeper::Outcome::stopped: return Outcome::stopped;
    default: return Outcome::lost;
  }
}

// getrusage(2) counts in these units.
constexpr std::uint64_t block_bytes = 512;

bj::object usage_of(const keeper::Ended& ended) {
  return {{"userMs", ended.user_us / 1000},
          {"systemMs", ended.system_us / 1000},
          {"residentBytesMax", ended.resident_bytes_max},
          {"majorFaults", ended.major_faults},
          {"blocksIn", ended.blocks_in},
          {"blocksOut", ended.blocks_out},
          {"cpuMs", (ended.user_us + ended.system_us) / 1000},
          {"memoryBytesPeak", ended.resident_bytes_max},
          {"readBytes", ended.blocks_in * block_bytes},
          {"writtenBytes", ended.blocks_out * block_bytes},
          {"oomKills", ended.oom_kills},
          {"stdoutBytes", ended.stdout_bytes},
          {"stderrBytes", ended.stderr_bytes}};
}

}  // namespace

ExecRequest::ExecRequest(const Command& command, const PlaceRules& rules)
    : exec_{.exec_id = command.exec_id,
            .argv = command.argv,
            .cwd = command.cwd,
            .deadline_ms = not_negative(command.timeout_ms.value_or(0)),
            .grace_ms = not_negative(command.grace_ms),
            .output_bytes_max =
                not_negative(std::min(command.output_bytes_max,
                                      rules.output_bytes_max.value_or(command.output_bytes_max)))} {
  for (const auto& [name, value] : command.environment) {
    std::string& entry = exec_.environment.emplace_back();
    // Reserved first: a growing string leaves a copy behind that is never wiped.
    entry.reserve(name.size() + 1 + value.reveal().size());
    entry.append(name).append("=").append(value.reveal());
  }
  for (const std::string& entry : rules.environment) {
    if (!command.environment.contains(entry.substr(0, entry.find('=')))) {
      exec_.environment.push_back(entry);
    }
  }
  if (const auto* given = std::get_if<StdinBytes>(&command.input)) {
    exec_.stdin_kind = keeper::Stdin::bytes;
    exec_.stdin_bytes = given->bytes.reveal();
  } else if (std::holds_alternative<StdinPipe>(command.input)) {
    exec_.stdin_kind = keeper::Stdin::pipe;
  }
  if (command.terminal) {
    exec_.rows = terminal_side(command.terminal->rows);
    exec_.columns = terminal_side(command.terminal->columns);
  }
}

ExecRequest::~ExecRequest() {
  for (std::string& entry : exec_.environment) wipe(entry);
  wipe(exec_.stdin_bytes);
}

keeper::Resize resize_of(const std::string& exec_id, const core::TerminalSize& size) {
  return {
      .exec_id = exec_id, .rows = terminal_side(size.rows), .columns = terminal_side(size.columns)};
}

Started started_of(const keeper::Started& started) {
  return {.pid = started.pid, .started_at = time_of(started.started_us)};
}

Result<Ended> ended_of(const keeper::Ended& ended) {
  if (ended.outcome == keeper::Outcome::failed_to_start) {
    return std::unexpected(keeper::as_error(
        {.code = ended.error_code, .message = ended.message, .remedy = ended.remedy}));
  }
  Ended out{.outcome = outcome_of(ended.outcome),
            .started_at = time_of(ended.started_us),
            .ended_at = time_of(ended.ended_us),
            .usage = usage_of(ended),
            .bytes_over_limit = static_cast<std::int64_t>(ended.bytes_over_limit),
            .bytes_lost = static_cast<std::int64_t>(ended.bytes_lost),
            .left_behind = ended.left_behind,
            .oom_kills = static_cast<std::int64_t>(ended.oom_kills)};
  if (ended.signal != 0) {
    out.signal = signal_name(ended.signal);
  } else if (out.outcome != Outcome::lost) {
    out.exit_code = ended.code;
  }
  return out;
}

std::string signal_name(int number) {
  if (const char* name = ::sigabbrev_np(number)) return "SIG" + std::string{name};
  if (number >= SIGRTMIN && number <= SIGRTMAX) {
    return "SIGRTMIN+" + std::to_string(number - SIGRTMIN);
  }
  return "signal " + std::to_string(number);
}

}  // namespace berth::keepers
