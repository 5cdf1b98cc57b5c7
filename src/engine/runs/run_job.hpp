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
  std::int64_t hold_ms = 5LL * 60 * 1000;  // how long a command lives when no server renews it
  std::int64_t silence_ms = core::heartbeat_silence_max_ms;
  std::int64_t runs_max = 64;  // that this server works on at a time
};

// What an agent may keep in its home. 0 is without a limit.
struct HomeLimits {
  std::int64_t bytes_max = 0;
  std::int64_t files_max = 0;

  // No look at a home counts more.
  std::int64_t files_counted() const { return files_max > 0 ? files_max : 10'000'000; }
};

// What every run's work is done with. Owned by the workshop.
struct WorkTools {
  Services& services;
  LeaseLifecycle& leases;
  const RunLogs& logs;
  Secrets& secrets;
  RunTokens& tokens;
  Quotas& quotas;
  HomeDisk* homes;  // none: this server keeps no homes of agents
  WorkOptions options;
  asio::any_io_executor executor;
};

// Carries one run from wherever its rows say it is to its end: acquire, realize, execute, record,
// release. Every step can be repeated, so a server that died in the middle is followed by another
// that goes on from the rows, with nothing run twice.
class RunJob {
 public:
  RunJob(WorkTools& tools, ClaimedRun claimed);

  // An error means that the run is not at its end. `cancelled`: the server stops. `node_fenced`:
  // the run is another server's now. Any other: it can be taken up again from its rows.
  Task<> carry();

  const core::RunId& id() const { return id_; }
  const core::CompanyId& company() const { return company_; }
  core::RunState status() const { return run_.value.status; }
  // Ends the command as soon as there is one. Returns at once.
  void cancel();
  void hide(const Secret& value);
  // run_not_running unless the command executes.
  Task<> send(drivers::Input input);
  // After a heartbeat: as long as this server lives, so does the command.
  void renew();
  // Ends what was started beside the work, after the work was cancelled.
  Task<> stop() { return side_.stop(); }

 private:
  // How the work went, once nothing more will happen in the place.
  struct End {
    core::RunEvent event = core::RunEvent::setup_failed;
    std::optional<Error> error = {};
    std::optional<drivers::Ended> command = {};
    bool without_words = false;  // of the command and its driver: the store refuses some of them
  };
  // What is to be recorded of a command that runs.
  struct Start {
    core::RunCommand shown;
    std::optional<std::string> resumed_session = {};
    drivers::Started command;
    bj::object invocation;
    Time noticed_at;
    std::vector<std::string> warnings = {};  // of what the command has to go without
  };
  struct Plan {
    drivers::Command command;
    core::RunCommand shown;  // as the row has it
    core::RunEnvironment environment = {};
    std::optional<std::string> resumed_session = {};
    std::string prompt = {};                           // of an agent's turn
    std::map<std::string, std::string> defaults = {};  // variables, unless others are configured
    std::vector<std::string> warnings = {};
  };
  // Whether the program goes on with the session that its agent has.
  enum class SessionUse { resume, fresh };

  Task<> reload();
  // By whom its place is reached, and what they are told of it.
  Task<> find_place();
  Task<> acquire();
  Task<> start();
  // The command in its place, under this id.
  Task<Start> launch(std::string exec_id, SessionUse use);
  // In a transaction: that the command of a run that is starting runs.
  Result<core::Stored<core::Run>> record_start(store::Session& session,
                                               core::Stored<core::Run> run) const;
  // A plain command that is over in a moment is recorded once, with its end; of any other it is
  // written after that moment that it runs. Until then a crash finds what it finds between the
  // start of a command and the record of it: a keeper that knows the command by its id.
  Task<> record_start_soon();
  Task<core::RunInput> given_input();
  // The command line and stdin: what the caller gave, or what the adapter makes of the agent.
  Task<Plan> plan(core::RunInput input, SessionUse use);
  Result<core::RunEnvironment> environment_for(const Plan& plan, const core::RunInput& input,
                                               const drivers::Workspace& workspace) const;
  // Values of secrets and the run's token, just before they are needed; all of them are hidden.
  Task<> resolve(Plan& plan);
  // Hides again what the run was given before this process looked after it.
  Task<> recall();
  void hide_telling(const core::RunEnvironment& environment);
  core::InvocationPlace invocation_place() const;
  // The text of the agent's instructionsFilePath, which is a file of this server.
  Task<std::optional<std::string>> instructions();
  // What the session had used before this run, where the program counts whole sessions.
  Task<std::optional<core::SessionUsage>> session_before();
  // Notes what the agent is asked, without secrets, for the row and the first event.
  void show_prompt(Plan& plan, bj::object& invocation) const;
  // Why the agent's program failed, as far as it said; absent for other commands.
  std::optional<Error> agent_failure() const;
  // The session that the agent's home has, where its file is known to be. Why it is not used is
  // one of the warnings.
  Task<> find_session(Plan& plan);
  std::vector<std::string> path_requests(const std::optional<std::string>& home) const;
  // Whether the program has ended because it does not know the session that it was to resume.
  bool lost_session(const drivers::Ended& ended) const;
  // A program that lost its session, started once more without it.
  Task<drivers::Ended> follow_again(drivers::Ended ended);
  // In the transaction that ends the run: the session that the next turn goes on with.
  Result<> record_home(store::Session& session) const;
  // Whether the place keeps nothing between runs, and is no folder or account that we know: then
  // the session's file is brought there and fetched again.
  bool carries_session() const;
  // A short command of our own in the place: what it wrote to stdout.
  Task<std::string> control(const std::string& name, std::vector<std::string> argv,
                            std::optional<std::string> input);
  // A home that can be written, and the file of the session to go on with.
  Task<> furnish(drivers::Workspace& workspace, Plan& plan);
  Task<> fetch_session();
  // The home of the agent and its limits, where it lies on this disk.
  Task<> find_home();
  Task<> expect_room_at_home();
  Task<HomeLimits> home_limits();
  std::optional<Error> too_full(const HomeSize& size, const HomeLimits& limits) const;
  Task<> measure_home();
  // Beside the command of an agent: ends it where it cannot reach its model, or fills its home.
  Task<> watch();
  Task<std::optional<Error>> reason_to_stop();
  // Whether the disk will be down to its reserve soon, if it goes on like this.
  bool nears_reserve();
  Task<> note_denied(const drivers::Ended& ended);
  // The failure of a command whose own words are not known to name what was denied.
  Error with_denials(Error error) const;
  static std::string denied_text(const bj::object& entry);
  void stop_for(Error why);
  // Where the program of an agent was looked for, and how it gets there.
  Error explain_start(Error error) const;
  Task<std::int64_t> known_agent_events();
  Task<drivers::Ended> follow();
  Task<drivers::Ended> follow_once();
  End outcome_of_stopped(End end) const;
  Task<End> work();
  Result<End> setup_failed(Error error) const;
  // The end of a run whose place nobody here can reach, now or later.
  Result<End> place_missing(Error error) const;
  static End cancelled();
  End outcome_of(const drivers::Ended& ended) const;
  // `said`: what the agent reported last, if it did.
  Error timeout_error(const std::optional<Error>& said) const;
  // Before the end is recorded, because the place may be gone right after it.
  Task<> count_usage();
  Task<> finish(End end);
  Task<> release();

  // In a transaction: the run as it is, while it is this node's.
  Result<core::Stored<core::Run>> our_run(store::Session& session) const;
  using Change = std::function<void(core::Run&)>;
  Result<> record_in(store::Session& session, const Change& change);
  // Moves the run on, with the event that tells it. False when that has been done: by an attempt
  // whose answer was lost on its way from the store.
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
  bool has_looked_ = false;  // the rows are those of the claim, and nothing was done with them yet
  bool has_asked_ = false;   // somebody may have asked for the place already
  std::optional<core::Environment> environment_;
  std::optional<core::Agent> agent_;
  std::optional<drivers::PlaceRef> place_;
  drivers::Driver* driver_ = nullptr;
  std::shared_ptr<RunOutput> output_;
  std::optional<Start> start_;             // of a command that runs
  bj::object usage_;                       // of the place as a whole, when the command is over
  std::string carried_cwd_;                // of a place that the session is carried to
  std::string carried_home_;               // that was made there
  std::optional<std::string> fetch_note_;  // why the session's file is not kept
  std::string exec_id_;                    // of the command that runs now
  std::optional<core::AgentHome> home_;    // of the agent, as it was when the run began
  std::optional<HomeSize> home_size_;      // when the command was over
  bool begun_again_ = false;
  std::optional<Error> stopped_for_;       // why this server has ended the command
  std::vector<bj::object> denied_;         // what the way out has refused to the command
  std::optional<HomeLimits> home_limits_;  // of a home that lies on this disk
  std::int64_t home_bytes_before_ = 0;     // when the run began
  Clock::Steady home_looked_at_ = {};
  Clock::Steady disk_looked_at_ = {};
  std::uint64_t disk_free_ = 0;
  core::HiddenValues hidden_;  // of all attempts to follow
  bool executes_ = false;
  bool cancelled_ = false;
  bool cancelling_ = false;
  TaskGroup side_;  // renewals and the cancel, beside the following
};

}  // namespace berth::engine
