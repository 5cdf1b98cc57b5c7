#pragma once

#include "base/json.hpp"
#include "core/enums.hpp"

// What command-line agents print: one JSON object a line, turned into events of the run.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(AgentEventKind, session, assistant, thinking, tool_call, tool_result,
                        result, error, raw)

struct AgentEvent {
  AgentEventKind kind = AgentEventKind::raw;
  EventLevel level = EventLevel::info;
  std::string message = {};
  bj::object payload = {};

  friend bool operator==(const AgentEvent&, const AgentEvent&) = default;
};

struct AgentUsage {
  std::int64_t input_tokens = 0;
  std::int64_t cached_input_tokens = 0;
  std::int64_t output_tokens = 0;

  friend bool operator==(const AgentUsage&, const AgentUsage&) = default;
};
BOOST_DESCRIBE_STRUCT(AgentUsage, (), (input_tokens, cached_input_tokens, output_tokens))

// What is known of the work when the output ends. Its texts can be stored: see storable().
struct AgentOutcome {
  std::optional<std::string> session_id = {};  // with which a later run can go on
  std::optional<std::string> model = {};
  std::optional<std::string> result = {};  // the last words
  std::optional<std::string> error = {};
  std::optional<AgentUsage> usage = {};
  std::optional<double> cost_usd = {};
};
BOOST_DESCRIBE_STRUCT(AgentOutcome, (), (session_id, model, result, error, usage, cost_usd))

inline constexpr std::size_t agent_line_bytes_max = 1024UL * 1024;  // a longer one is raw output
inline constexpr std::size_t event_text_bytes_max = 16UL * 1024;
inline constexpr std::size_t result_bytes_max = 64UL * 1024;
inline constexpr std::size_t agent_name_bytes_max = 256;  // of a model, of a tool's call
inline constexpr std::size_t session_id_bytes_max = 128;

// Foreign text for a column: neither store keeps bytes that are no UTF-8, nor a NUL.
std::string storable(std::string_view text);

// Whether this may stand in the command line of a later run: letters, digits and "._:-", and no
// dash at its start, where it would be an option.
bool is_session_id(std::string_view text);

// Reads the standard output of an agent as it comes. It never fails: what it does not know is raw
// output. The lines of `process` are not looked at.
class AgentOutput {
 public:
  explicit AgentOutput(AdapterType adapter) : adapter_(adapter) {}

  std::vector<AgentEvent> push(std::string_view chunk);
  // The line that had no end.
  std::vector<AgentEvent> finish();
  const AgentOutcome& outcome() const { return outcome_; }

 private:
  void read_line(std::string_view line, std::vector<AgentEvent>& out);

  AdapterType adapter_;
  std::string line_;
  bool is_too_long_ = false;
  AgentOutcome outcome_;
};

}  // namespace berth::core
