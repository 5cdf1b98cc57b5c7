#pragma once

#include "core/output/agent_output.hpp"
#include "core/output/agent_waits.hpp"
#include "core/output/hidden_values.hpp"
#include "core/output/log_lines.hpp"
#include "core/output/redaction.hpp"
#include "engine/runs/run_log.hpp"
#include "engine/services.hpp"
#include "places/place.hpp"

#include <array>
#include <memory>

namespace berth::engine {

// Processes a command's output for the run's log: hides secrets, cuts pieces between characters,
// and turns an agent's own messages into run events.
class RunOutput final : public places::OutputTaker {
 public:
  // The logs and services outlive this object.
  RunOutput(Services& services, const RunLogs& logs, core::Run run, core::NodeId node,
            core::AgentOutput agent, std::int64_t events_known);

  // Adds a value to hide from now on, before the command starts or while it runs. A value that is
  // already hidden changes nothing.
  void hide(const Secret& value);
  // How often the redaction set was rebuilt.
  std::int64_t sets_made() const { return sets_made_; }

  // The output comes from another machine, whose keeper does not know this disk: once the disk is
  // down to its reserve, take() fails with `disk_full`.
  void leave_disk_reserve() { leaves_reserve_ = true; }

  Task<> take(std::span<const places::OutputPiece> pieces) override;
  Task<> warned(std::string message) override;
  // Records the current size on the run's row for other servers. A short command's size is recorded
  // with its end.
  Task<> tell();
  // Writes everything held back, and flushes the log to disk.
  Task<> finish();

  struct Facts {
    std::int64_t log_bytes = 0;
    std::int64_t last_seq = 0;
    std::optional<Time> last_output_at = {};
    std::string sha256 = {};
    std::string stdout_excerpt = {};
    std::string stderr_excerpt = {};
  };
  const Facts& facts() const { return facts_; }
  const core::AgentOutcome& agent_outcome() const { return agent_.outcome(); }
  const core::AgentSigns& agent_signs() const { return agent_.signs(); }
  // The session named in the program's first event, if it is a UUID. Later events may repeat an id
  // that the program does not know.
  const std::optional<std::string>& session() const { return session_; }
  // Since when the program has only been trying to reach its model.
  const std::optional<Time>& waits_since() const { return waits_.since(); }
  // The program was restarted: what it reported so far does not count. The reason becomes a run
  // event.
  void begin_again(const std::string& why);

 private:
  struct Stream {
    std::unique_ptr<core::Redactor> redactor;  // absent while nothing is hidden
    core::RecordCutter cutter;
    Time at = {};
  };

  Task<> keep(core::OutputStream stream, Time at, std::string_view bytes);
  Result<> expect_room(std::size_t bytes);
  void take_note(const places::OutputPiece& piece);
  asio::awaitable<std::vector<core::AgentEvent>> read_agent(std::string_view bytes);
  void note_events(std::vector<core::AgentEvent> events, Time at);
  void warn(const std::optional<std::string>& message, Time at);
  Task<> publish();
  void leave_reserve();
  Task<> save_events();

  Services& services_;
  const RunLogs& logs_;
  core::Run run_;
  core::NodeId node_;
  std::optional<RunLogWriter> log_;
  core::HiddenValues hidden_;
  std::unique_ptr<core::RedactionSet> set_;  // redactors refer to it
  std::int64_t sets_made_ = 0;
  std::array<Stream, 2> streams_;
  core::AgentOutput agent_;
  core::AgentWaits waits_;
  std::optional<std::string> session_;
  core::LossNotes losses_;
  std::int64_t notes_ = 0;
  bool leaves_reserve_ = false;
  std::size_t room_bytes_ = 0;  // may be written before the disk is checked again
  std::int64_t events_known_;   // already stored by an earlier process
  std::vector<core::RunEventRecord> events_;
  std::int64_t events_left_out_ = 0;
  std::int64_t events_in_reserve_ = 0;
  Clock::Steady told_at_;
  std::int64_t told_bytes_ = 0;
  Facts facts_;
};

}  // namespace berth::engine
