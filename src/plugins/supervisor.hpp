#pragma once

#include "plugins/gate.hpp"
#include "plugins/host.hpp"
#include "plugins/manifest/routes.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace berth::plugins {

// One plugin of the host: its worker, restarted when it crashes, everything open with it, and the
// responses to its requests. Used through a shared_ptr, which every call keeps. One thread.
class Supervisor final : public Peer, public StderrReader {
 public:
  Supervisor(asio::any_io_executor executor, const HostConfig& config, HostServices& services,
             Clock& clock, Random& random, InstalledPlugin plugin, std::optional<WorkerUser> user);
  ~Supervisor() override;

  const InstalledPlugin& plugin() const { return plugin_; }
  const std::optional<WorkerUser>& user() const { return user_; }
  PluginStatus status() const;
  void allow(std::vector<std::string> rules) { plugin_.egress = std::move(rules); }
  bool is_running() const { return state_ == WorkerState::running; }
  bool advertises(const std::string& method) const { return methods_.contains(method); }
  Dialect dialect() const { return dialect_of(methods_); }

  // Returns when it runs and has its configs, or fails with the error that is also its state.
  Task<> start();
  Task<> stop();
  // Waits briefly until it runs.
  Task<> ready();

  asio::awaitable<CallResult> call(PluginCall call);
  bool tell(std::string_view method, const bj::object& params, const core::CompanyId& company);
  Task<> config_changed(core::CompanyId company, bj::object config);
  StreamRoutes& streams() { return streams_; }
  // Secrets given to the worker in a call are held here first.
  GivenSecrets& given() { return given_; }
  // Ends the worker because of a violation; it is restarted as after a crash.
  void punish(std::string why);
  // Ends the worker and does not restart it: its state is `error` until it is started again.
  void expel(std::string why);

  asio::awaitable<Reply> answer(Request request) override;
  bool hear(Notification notification) override;
  void unread(std::string_view why, std::string_view start_of_line) override;
  void read_stderr(std::string_view line, LinePart part) override;

 private:
  void enter(WorkerState state, std::string reason);
  // Keeps the worker's last lines; they are already cleaned.
  void remember(std::string_view line);
  std::optional<core::CompanyId> company_of_invocation(const Notification& notification) const;
  bool hear_log(const Notification& notification);
  Task<> launch();
  Task<> enter_box();
  Task<> greet();
  Task<> send_configs();
  Task<> send_config(core::CompanyId company, bj::object config);
  Task<> watch();
  Task<> bury();
  std::chrono::milliseconds next_delay();
  bool may_log();
  // Cleans the line.
  void log(PluginLogLine line);

  asio::any_io_executor executor_;
  const HostConfig& config_;
  HostServices& services_;
  Clock& clock_;
  Random& random_;
  InstalledPlugin plugin_;
  std::optional<WorkerUser> user_;

  WorkerState state_ = WorkerState::stopped;
  std::string reason_;      // contains no text from the worker
  std::string last_words_;  // of this worker, or of the last one while none runs
  std::shared_ptr<Worker> worker_;
  std::set<std::string> methods_;
  keeper::BoxReport box_;
  int crashes_ = 0;
  std::optional<Clock::Steady> running_since_;
  std::optional<Time> running_since_time_;
  bool stopping_ = false;
  std::optional<std::string> expelled_;  // why it is not restarted
  int starting_ = 0;                     // start() calls in progress
  bool watching_ = false;                // watch() is in progress

  GivenSecrets given_{clock_};
  GivenSecrets::Hold own_keys_;  // secrets in the worker's own variables
  // The worker has requested these itself, and may keep them as long as it runs.
  std::deque<GivenSecrets::Hold> resolved_;
  OpenInvocations invocations_;
  // Scopes of notifications, which have no response: they expire.
  std::deque<std::pair<Clock::Steady, std::string>> told_;
  OutputRoutes outputs_;
  StreamRoutes streams_;
  Clock::Steady log_second_{};
  int logged_in_second_ = 0;
  Condition waiters_;
  TaskGroup tasks_;
};

}  // namespace berth::plugins
