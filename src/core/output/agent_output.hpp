#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

// What command-line agents print: one JSON object a line, turned into events of the run.
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

// Tokens as the program counts them. Codex counts the cached ones among its input, Claude does not.
struct AgentUsage {
  std::int64_t input_tokens = 0;
  std::int64_t cached_input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cache_write_input_tokens = 0;

  friend bool operator==(const AgentUsage&, const AgentUsage&) = default;
};
BOOST_DESCRIBE_STRUCT(AgentUsage, (),
                      (input_tokens, cached_input_tokens, output_tokens, cache_write_input_tokens))

// What a session had used before a run went on with it.
struct SessionUsage {
  std::string session_id;
  AgentUsage usage = {};
  std::optional<std::string> model = {};

  friend bool operator==(const SessionUsage&, const SessionUsage&) = default;
};

// What is known of the work when the output ends. Its texts can be stored: see storable().
struct AgentOutcome {
  // With which a later run can go on. The program's first event has it, and no other: the result of
  // a run that found no session names the missing one.
  std::optional<std::string> session_id = {};
  std::optional<std::string> model = {};
  std::optional<std::string> result = {};  // the last words
  std::optional<std::string> error = {};
  std::optional<AgentUsage> usage = {};          // of this run
  std::optional<AgentUsage> session_usage = {};  // of all runs of a session that counts itself
  std::optional<double> cost_usd = {};
};
BOOST_DESCRIBE_STRUCT(AgentOutcome, (),
                      (session_id, model, result, error, usage, session_usage, cost_usd))

// What helps to explain a failure, and is not a fact about the work.
struct AgentSigns {
  std::optional<std::string> warning = {};  // the last one: the program went on after it
  std::string error_word = {};              // "authentication_failed", "error_max_turns"
  std::int64_t status = 0;                  // of the model's last answer, when it was told

  friend bool operator==(const AgentSigns&, const AgentSigns&) = default;
};

// A longer line is raw output. Codex cuts a command's output at 1 MiB, and escapes it then.
inline constexpr std::size_t agent_line_bytes_max = 8UL * 1024 * 1024;
inline constexpr std::size_t quick_line_bytes_max = 256UL * 1024;   // parsed in a few milliseconds
inline constexpr std::size_t event_message_bytes_max = 2UL * 1024;  // of a tool's call or result
inline constexpr std::size_t event_text_bytes_max = 16UL * 1024;
inline constexpr std::size_t result_bytes_max = 64UL * 1024;
inline constexpr std::size_t agent_name_bytes_max = 256;  // of a model, of a tool's call
inline constexpr std::size_t session_id_bytes_max = 128;

// Foreign text for a column: neither store keeps bytes that are no UTF-8, nor a NUL.
std::string storable(std::string_view text);

// Whether this may stand in the command line of a later run: letters, digits and "._:-", and no
// dash at its start, where it would be an option.
bool is_session_id(std::string_view text);

// What reading a line adds to.
struct AgentReading {
  AgentOutcome outcome = {};
  AgentSigns signs = {};
  std::optional<SessionUsage> before = {};
  std::optional<std::string> model = {};  // that the config names
};

// Reads the standard output of an agent as it comes. It never fails: what it does not know is raw
// output. The lines of `process` are not looked at.
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
  // The line that had no end.
  std::vector<AgentEvent> finish();
  // The program was started once more, with a new session.
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
