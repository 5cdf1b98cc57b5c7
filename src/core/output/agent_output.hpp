#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

// What command-line agents print: one JSON object per line, converted to run events.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(AgentEventKind, session, assistant, thinking, tool_call, tool_result,
                        notice, result, error, raw)

struct AgentEvent {
  AgentEventKind kind = AgentEventKind::raw;
  EventLevel level = EventLevel::info;
  std::string message = {};
  bj::object payload = {};

  friend bool operator==(const AgentEvent&, const AgentEvent&) = default;
};

// Token counts as the program reports them. Codex includes cached tokens in its input; Claude does
// not.
struct AgentUsage {
  std::int64_t input_tokens = 0;
  std::int64_t cached_input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cache_write_input_tokens = 0;

  friend bool operator==(const AgentUsage&, const AgentUsage&) = default;
};
BOOST_DESCRIBE_STRUCT(AgentUsage, (),
                      (input_tokens, cached_input_tokens, output_tokens, cache_write_input_tokens))

// What a session had used before this run continued it.
struct SessionUsage {
  std::string session_id;
  AgentUsage usage = {};
  std::optional<std::string> model = {};

  friend bool operator==(const SessionUsage&, const SessionUsage&) = default;
};

// What is known about the work when the output ends. Its texts can be stored: see storable().
struct AgentOutcome {
  // The session that a later run can continue. Only the program's first event has it: the result of
  // a run that found no session names the missing one.
  std::optional<std::string> session_id = {};
  std::optional<std::string> model = {};
  std::optional<std::string> result = {};  // the final message
  std::optional<std::string> error = {};
  std::optional<AgentUsage> usage = {};          // of this run
  std::optional<AgentUsage> session_usage = {};  // of the whole session, if reported
  std::optional<double> cost_usd = {};
};
BOOST_DESCRIBE_STRUCT(AgentOutcome, (),
                      (session_id, model, result, error, usage, session_usage, cost_usd))

// Hints that help to explain a failure, but are not facts about the work.
struct AgentSigns {
  std::optional<std::string> warning = {};  // the last one: the program continued after it
  std::string error_word = {};              // "authentication_failed", "error_max_turns"
  std::int64_t status = 0;                  // of the model's last response, if reported

  friend bool operator==(const AgentSigns&, const AgentSigns&) = default;
};

// A longer line is raw output. Codex cuts a command's output at 1 MiB, then escapes it.
inline constexpr std::size_t agent_line_bytes_max = 8UL * 1024 * 1024;
inline constexpr std::size_t quick_line_bytes_max = 256UL * 1024;   // parsed in a few milliseconds
inline constexpr std::size_t event_message_bytes_max = 2UL * 1024;  // of a tool call or result
inline constexpr std::size_t event_text_bytes_max = 16UL * 1024;
inline constexpr std::size_t result_bytes_max = 64UL * 1024;
inline constexpr std::size_t agent_name_bytes_max = 256;  // of a model or a tool call
inline constexpr std::size_t session_id_bytes_max = 128;

// Foreign text for a column: neither store accepts invalid UTF-8 or NUL.
std::string storable(std::string_view text);

// Whether this may appear in a later run's command line: letters, digits and "._:-", without a
// leading dash, which would make it an option.
bool is_session_id(std::string_view text);

// The state that reading a line updates.
struct AgentReading {
  AgentOutcome outcome = {};
  AgentSigns signs = {};
  std::optional<SessionUsage> before = {};
  std::optional<std::string> model = {};  // named by the config
};

// Reads an agent's standard output incrementally. It never fails: unknown lines are raw output. It
// ignores the output of `process`.
class AgentOutput {
 public:
  explicit AgentOutput(AdapterType adapter, std::optional<SessionUsage> before = {},
                       std::optional<std::string> model = {})
      : adapter_(adapter), reading_{.before = std::move(before), .model = std::move(model)} {}

  std::vector<AgentEvent> push(std::string_view chunk);
  // Whether push() may parse a line that takes a thread noticeably long. A chunk that ends no line
  // is only kept.
  bool would_take_long(std::string_view chunk) const {
    return adapter_ != AdapterType::process && line_.size() + chunk.size() > quick_line_bytes_max &&
           chunk.contains('\n');
  }
  // Handles the last, unterminated line.
  std::vector<AgentEvent> finish();
  // The program was restarted with a new session.
  void begin_again() {
    line_.clear();
    line_bytes_ = 0;
    reading_ = {.model = std::move(reading_.model)};
  }
  AdapterType adapter() const { return adapter_; }
  const AgentOutcome& outcome() const { return reading_.outcome; }
  const AgentSigns& signs() const { return reading_.signs; }

 private:
  void read_line(std::string_view line, std::vector<AgentEvent>& out);

  AdapterType adapter_;
  std::string line_;
  std::uint64_t line_bytes_ = 0;  // of the line; `line_` has no more than the first of them
  AgentReading reading_;
};

}  // namespace berth::core
