#pragma once

#include "base/async/task_group.hpp"
#include "core/config/adapters.hpp"
#include "core/rows/agent.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/node.hpp"
#include "core/run_environment.hpp"
#include "engine/accounts/quotas.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "engine/runs/run_log.hpp"
#include "engine/runs/run_output.hpp"
#include "engine/runs/run_queue.hpp"
#include "engine/runs/run_tokens.hpp"
#include "engine/upkeep/home_disk.hpp"

namespace berth::engine {

struct WorkOptions {
  std::string api_url = {};                      // for processes on this machine
  std::vector<std::string> api_candidates = {};  // for processes elsewhere
  std::int64_t hold_ms = 5LL * 60 * 1000;  // how long a command lives without renewal by a server
  std::int64_t silence_ms = core::heartbeat_silence_max_ms;
  std::int64_t runs_max = 64;  // maximum number of concurrent runs on this server
};

// What an agent may keep in its home. 0 means no limit.
struct HomeLimits {
  std::int64_t bytes_max = 0;
  std::int64_t files_max = 0;

  // The maximum number of files counted in a home.
  std::int64_t files_counted() const { return files_max > 0 ? files_max : 10'000'000; }
};

// The tools for every run's work. Owned by the dispatcher.
struct WorkTools {
  Services& services;
  LeaseLifecycle& leases;
  const RunLogs& logs;
  Secrets& secrets;
  RunTokens& tokens;
  Quotas& quotas;
  HomeDisk* homes;  // null: this server keeps no agent homes
  WorkOptions options;
  asio::any_io_executor executor;
};

// Takes one run from the state in its rows to its end: acquire, realize, execute, record, release.
// Every step can be repeated, so if a server dies midway, another one continues from the rows, and
// nothing runs twice.
class RunJob {
 public:
  RunJob(WorkTools& tools, ClaimedRun claimed);

  // An error means that the run has not ended. `cancelled`: the server is stopping. `node_fenced`:
  // the run belongs to another server now. Any other: it can be resumed from its rows.
  Task<> carry();

  const core::RunId& id() const { return id_; }
  const core::CompanyId& company() const { return company_; }
  core::RunState status() const { return run_.value.status; }
  // Ends the command as soon as there is one. Returns at once.
  void cancel();
  void hide(const Secret& value);
  // run_not_running unless the command is executing.
  Task<> send(places::Input input);
  // Called after a heartbeat: the command lives as long as this server does.
  void renew();
  // Ends side tasks, after the work was cancelled.
  Task<> stop() { return side_.stop(); }

 private:
  // The outcome, once nothing more will happen in the place.
  struct End {
    core::RunEvent event = core::RunEvent::setup_failed;
    std::optional<Error> error = {};
    std::optional<places::Ended> command = {};
    bool without_words = false;  // omit text from the command and driver: the store rejected it
  };
  // What to record about a running command.
  struct Start {
    core::RunCommand shown;
    std::optional<std::string> resumed_session = {};
    places::Started command;
    bj::object invocation;
    Time noticed_at;
    std::vector<std::string> warnings = {};  // about what the command has to do without
  };
  struct Plan {
    places::Command command;
    core::RunCommand shown;  // as stored in the row
    core::RunEnvironment environment = {};
    std::optional<std::string> resumed_session = {};
    std::string prompt = {};                           // of an agent's turn
    std::map<std::string, std::string> defaults = {};  // variables used unless configured
    std::vector<std::string> warnings = {};
  };
  // Whether the program continues its agent's session.
  enum class SessionUse { resume, fresh };

  Task<> reload();
  // Finds the driver for the place, and what the driver needs to know about it.
  Task<> find_place();
  // What runs commands in the place.
  Result<places::Commands*> commands() const;
  Task<> acquire();
  Task<> start();
  // Starts the command in its place, under this id.
  Task<Start> launch(std::string exec_id, SessionUse use);
  // In a transaction: records that the command of a starting run is running.
  Result<core::Stored<core::Run>> record_start(store::Session& session,
                                               core::Stored<core::Run> run) const;
  // A plain command that ends within a moment is recorded once, with its end. Any other is recorded
  // as running after that moment. A crash before that finds the same as between start and record: a
  // keeper that knows the command by its id.
  Task<> record_start_soon();
  Task<core::RunInput> given_input();
  // The command line and stdin: given by the caller, or built by the agent's adapter.
  Task<Plan> plan(core::RunInput input, SessionUse use);
  Result<core::RunEnvironment> environment_for(const Plan& plan, const core::RunInput& input,
                                               const places::Workspace& workspace) const;
  // Resolves secret values and the run's token just before they are needed; all of them are hidden.
  Task<> resolve(Plan& plan);
  // Hides again what the run received before this process took over.
  Task<> recall();
  void hide_telling(const core::RunEnvironment& environment);
  core::InvocationPlace invocation_place() const;
  // The content of the agent's instructionsFilePath, a file on this server.
  Task<std::optional<std::string>> instructions();
  // What the session had used before this run, if the program counts whole sessions.
  Task<std::optional<core::SessionUsage>> session_before();
  // Records the agent's prompt, without secrets, for the row and the first event.
  void show_prompt(Plan& plan, bj::object& invocation) const;
  // Why the agent's program failed, if it reported that; absent for other commands.
  std::optional<Error> agent_failure() const;
  // Finds the session in the agent's home, if its file is known to exist. Otherwise a warning
  // explains why it is not used.
  Task<> find_session(Plan& plan);
  std::vector<std::string> path_requests(const std::optional<std::string>& home) const;
  // Whether the program ended because it does not know the session that it should resume.
  bool lost_session(const places::Ended& ended) const;
  // Restarts a program that lost its session, without the session.
  Task<places::Ended> follow_again(places::Ended ended);
  // In the transaction that ends the run: records the session that the next turn continues.
  Result<> record_home(store::Session& session) const;
  // Whether the place keeps nothing between runs and is not a folder or account that we know. The
  // session file is then copied there and back.
  bool carries_session() const;
  // Runs a short command of our own in the place; returns its stdout.
  Task<std::string> control(const std::string& name, std::vector<std::string> argv,
                            std::optional<std::string> input);
  // Prepares a writable home with the file of the session to continue.
  Task<> furnish(places::Workspace& workspace, Plan& plan);
  Task<> fetch_session();
  // The agent's home and its limits, if it is on this disk.
  Task<> find_home();
  Task<> expect_room_at_home();
  Task<HomeLimits> home_limits();
  std::optional<Error> too_full(const HomeSize& size, const HomeLimits& limits) const;
  Task<> measure_home();
  // Runs beside an agent's command: ends it if it cannot reach its model, or fills its home.
  Task<> watch();
  Task<std::optional<Error>> reason_to_stop();
  // Whether the disk will soon be down to its reserve at this rate.
  bool nears_reserve();
  Task<> note_denied(const places::Ended& ended);
  // For a failed command whose own output may not name the denied hosts.
  Error with_denials(Error error) const;
  static std::string denied_text(const bj::object& entry);
  void stop_for(Error why);
  // Adds a remedy if the agent's program was not found.
  Error explain_start(Error error) const;
  Task<std::int64_t> known_agent_events();
  Task<places::Ended> follow();
  Task<places::Ended> follow_once();
  End outcome_of_stopped(End end) const;
  Task<End> work();
  Result<End> setup_failed(Error error) const;
  // The end of a run whose place this server can never reach.
  Result<End> place_missing(Error error) const;
  static End cancelled();
  End outcome_of(const places::Ended& ended) const;
  // `said`: what the agent reported last, if it did.
  Error timeout_error(const std::optional<Error>& said) const;
  // Before the end is recorded, because the place may be gone right after it.
  Task<> count_usage();
  Task<> finish(End end);
  Task<> release();

  // In a transaction: the current run, if it still belongs to this node.
  Result<core::Stored<core::Run>> our_run(store::Session& session) const;
  using Change = std::function<void(core::Run&)>;
  Result<> record_in(store::Session& session, const Change& change);
  // Moves the run and adds the matching event. False when an earlier attempt already did so and
  // only its response was lost.
  Result<bool> move_in(store::Session& session, core::Stored<core::Run> run, core::RunEvent event,
                       const Change& change, const std::string& message);
  core::Call call() const;
  Task<> cancel_command();
  Task<> renew_command();

  WorkTools& tools_;
  core::RunId id_;
  core::CompanyId company_;
  core::Stored<core::Run> run_;
  LeaseLifecycle::Row lease_;
  bool has_looked_ = false;  // rows are from the claim and not used yet
  bool has_asked_ = false;   // the place may already have been requested
  std::optional<core::Environment> environment_;
  std::optional<core::Agent> agent_;
  std::optional<places::PlaceRef> place_;
  places::Place* where_ = nullptr;
  std::shared_ptr<RunOutput> output_;
  std::optional<Start> start_;             // of a running command
  bj::object usage_;                       // of the whole place, once the command has ended
  std::string carried_cwd_;                // in the place that the session is copied to
  std::string carried_home_;               // the home created there
  std::optional<std::string> fetch_note_;  // why the session file is not kept
  std::string exec_id_;                    // of the running command
  std::optional<core::AgentHome> home_;    // the agent's, as of the start of the run
  std::optional<HomeSize> home_size_;      // at the end of the command
  bool begun_again_ = false;
  std::optional<Error> stopped_for_;       // why this server ended the command
  std::vector<bj::object> denied_;         // egress that was denied to the command
  std::optional<HomeLimits> home_limits_;  // of a home on this disk
  std::int64_t home_bytes_before_ = 0;     // at the start of the run
  Clock::Steady home_looked_at_ = {};
  Clock::Steady disk_looked_at_ = {};
  std::uint64_t disk_free_ = 0;
  core::HiddenValues hidden_;  // across all attempts to follow
  bool executes_ = false;
  bool cancelled_ = false;
  bool cancelling_ = false;
  TaskGroup side_;  // renewals and cancellation, in parallel with follow()
};

}  // namespace berth::engine
