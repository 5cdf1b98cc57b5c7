#include "keeper/protocol/protocol.hpp"

#include "base/strings.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace berth::keeper {
namespace {

constexpr std::size_t roomy_bytes = std::size_t{256} << 10;

constexpr std::array<std::string_view, static_cast<std::size_t>(Outcome::count_)> outcome_names{
    "running", "exited", "signaled", "timed_out", "lapsed", "stopped", "failed_to_start", "lost"};
constexpr std::array<std::string_view, static_cast<std::size_t>(Step::count_)> step_names{
    "none", "session", "terminal", "cgroup", "stdio", "chdir", "exec", "fork"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::size_t frame_limit(Verb verb) {
  return verb == Verb::exec ? limits::exec_frame_bytes : limits::frame_bytes;
}

Result<> check_string(const Exec& exec, std::string_view text) {
  if (text.contains('\0')) {
    return fail(Errc::validation_failed,
                "exec " + exec.exec_id + ": an argument or variable contains a NUL byte");
  }
  if (text.size() > limits::command_string_bytes) {
    return fail(Errc::command_too_large,
                "exec " + exec.exec_id + ": an argument or variable has " +
                    std::to_string(text.size()) + " bytes; Linux takes " +
                    std::to_string(limits::command_string_bytes),
                "pass long values in a file or on stdin");
  }
  return {};
}

Result<> check_environment(const Exec& exec) {
  std::vector<std::string_view> names;
  for (const std::string_view entry : exec.environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool is_name =
        name.size() != entry.size() && !name.empty() && !is_digit(name[0]) &&
        std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
    if (!is_name) {
      return fail(
          Errc::variable_name_invalid,
          "exec " + exec.exec_id + ": " + in_quotes(name) + " is not the name of a variable",
          "use letters, digits and '_', and do not start with a digit");
    }
    names.push_back(name);
  }
  std::ranges::sort(names);
  if (const auto twin = std::ranges::adjacent_find(names); twin != names.end()) {
    return fail(Errc::variable_name_invalid,
                "exec " + exec.exec_id + ": variable " + in_quotes(*twin) + " is given twice");
  }
  return {};
}

Result<> check_sizes(const Exec& exec) {
  std::size_t total = 0;
  for (const auto* list : {&exec.argv, &exec.environment}) {
    for (const std::string& text : *list) {
      BERTH_DO(check_string(exec, text));
      total += text.size() + 1 + sizeof(char*);
    }
  }
  if (total > limits::command_bytes) {
    return fail(Errc::command_too_large,
                "exec " + exec.exec_id + ": arguments and environment take " +
                    std::to_string(total) + " bytes; the limit is " +
                    std::to_string(limits::command_bytes),
                "pass long values in a file or on stdin");
  }
  return {};
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  return outcome_names[static_cast<std::size_t>(outcome)];
}

std::string_view name_of(Step step) {
  return step_names[static_cast<std::size_t>(step)];
}

void FrameReader::feed(std::string_view bytes) {
  buffer_.erase(0, std::exchange(taken_, 0));
  // Large frames are rare, so their memory is released.
  if (buffer_.empty() && buffer_.capacity() > roomy_bytes) buffer_.shrink_to_fit();
  buffer_ += bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view{buffer_}.substr(taken_);
  if (rest.size() < frame_prefix_bytes + 1) return std::nullopt;
  WireReader reader{rest};
  std::uint32_t length = 0;
  Verb verb = Verb::none;
  reader.get(length);
  // The verb is checked before the frame is complete: it determines the maximum frame length.
  if (!reader.get(verb) || verb == Verb::none) {
    return fail(Errc::keeper_protocol, "the frame has a verb that does not exist");
  }
  if (length < frame_header_bytes || length > frame_limit(verb)) {
    return fail(Errc::keeper_protocol, "the frame has " + std::to_string(length) +
                                           " bytes; the limit is " +
                                           std::to_string(frame_limit(verb)));
  }
  if (rest.size() < frame_prefix_bytes + length) return std::nullopt;
  Frame frame{.verb = verb};
  reader.get(frame.request);
  frame.message = rest.substr(frame_prefix_bytes + frame_header_bytes, length - frame_header_bytes);
  taken_ += frame_prefix_bytes + length;
  return frame;
}

std::unexpected<Error> malformed(Verb verb) {
  return fail(Errc::keeper_protocol, "a message of verb " +
                                         std::to_string(static_cast<unsigned>(verb)) +
                                         " does not have the fields of that verb");
}

bool is_exec_id(std::string_view text) {
  return !text.empty() && text.size() <= limits::exec_id_bytes && text[0] != '.' &&
         std::ranges::all_of(
             text, [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; });
}

Result<> check(const Exec& exec) {
  if (!is_exec_id(exec.exec_id)) {
    return fail(Errc::validation_failed, in_quotes(exec.exec_id) + " is not an exec id",
                "use up to 64 letters, digits, '.', '_' and '-'");
  }
  if (exec.argv.empty() || exec.argv[0].empty()) {
    return fail(Errc::validation_failed, "exec " + exec.exec_id + ": there is no command");
  }
  if (exec.cwd.empty() || exec.cwd[0] != '/' || exec.cwd.contains('\0')) {
    return fail(Errc::validation_failed, "exec " + exec.exec_id + ": the directory " +
                                             in_quotes(exec.cwd) + " is not an absolute path");
  }
  if (exec.stdin_bytes.size() > limits::stdin_bytes) {
    return fail(Errc::validation_failed,
                "exec " + exec.exec_id + ": stdin has " + std::to_string(exec.stdin_bytes.size()) +
                    " bytes; the limit is " + std::to_string(limits::stdin_bytes),
                "open a pipe and write to it");
  }
  if (exec.grace_ms > limits::grace_ms || exec.deadline_ms > limits::deadline_ms) {
    return fail(Errc::validation_failed,
                "exec " + exec.exec_id + ": the deadline or grace is longer than allowed");
  }
  if ((exec.rows == 0) != (exec.columns == 0)) {
    return fail(Errc::validation_failed,
                "exec " + exec.exec_id + ": a terminal has both rows and columns");
  }
  BERTH_DO(check_environment(exec));
  return check_sizes(exec);
}

std::uint64_t fingerprint(const Exec& exec) {
  std::string bytes;
  WireWriter{bytes}.put(exec);
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a: detects a mistake, not an attack
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

Refused as_refused(const Error& error) {
  return {
      .code = std::string{name_of(error.code)}, .message = error.message, .remedy = error.remedy};
}

Error as_error(const Refused& refused) {
  Error error{.code = Errc::keeper_protocol, .message = refused.message, .remedy = refused.remedy};
#define X(name, kind) \
  if (refused.code == #name) error.code = Errc::name;
  BERTH_ERRC_LIST(X)
#undef X
  return error;
}

}  // namespace berth::keeper
