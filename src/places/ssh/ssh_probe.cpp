#include "core/config/environment_config.hpp"
#include "places/ssh/ssh.hpp"

#include <utility>

// The test of an environment on a host, step by step.
namespace berth::places {
namespace {

class Steps {
 public:
  explicit Steps(ProbeReport& report) : report_(report) {}

  void good(std::string name, std::string message) { add(std::move(name), std::move(message)); }
  // The summary reports the first step that fails.
  void bad(std::string name, const Error& error) {
    ProbeStep& step = add(std::move(name), error.message);
    step.ok = false;
    step.code = name_of(error.code);
    if (!error.remedy.empty()) step.remedy = error.remedy;
    if (report_.ok) {
      report_.summary = error.message;
      report_.details->insert_or_assign("error", error.message);
      report_.details->insert_or_assign("code", name_of(error.code));
    }
    report_.ok = false;
  }

 private:
  ProbeStep& add(std::string name, std::string message) {
    const auto now = std::chrono::steady_clock::now();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
    since_ = now;
    return report_.steps.emplace_back(ProbeStep{.name = std::move(name),
                                                .ok = true,
                                                .duration_ms = took.count(),
                                                .message = std::move(message)});
  }

  ProbeReport& report_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

bool is_about_reaching(Errc code) {
  return code == Errc::ssh_unreachable || code == Errc::ssh_failed;
}

void add_keeper(Steps& steps, const ssh::HostFacts& place) {
  if (place.keeper) {
    steps.good("keeper", "commands are held by " + *place.keeper);
  } else {
    steps.good("keeper",
               "commands are held by a script of the shell, without terminals: " + place.no_keeper);
  }
}

}  // namespace

Task<ProbeReport> Ssh::probe(const AcquireRequest& request) {
  ProbeReport report{.ok = true, .driver = core::DriverKind::ssh};
  Steps steps{report};
  BERTH_CO_TRY(const core::SshConfig config, core::parse_ssh_config(request.lease.config));
  report.details = bj::object{{"host", config.host},
                              {"port", config.port},
                              {"username", config.username},
                              {"remoteWorkspacePath", config.remote_workspace_path}};
  const Result<ssh::Connection::Use> connection = connection_of(request.lease);
  if (!connection) {
    steps.bad("authenticate", connection.error());
    co_return report;
  }
  const std::string name = (*connection)->target().name();
  if (const Result<> connected = co_await (*connection)->connect(); !connected) {
    const bool reached = !is_about_reaching(connected.error().code);
    if (reached) steps.good("connect", name + " answers");
    steps.bad(reached ? "authenticate" : "connect", connected.error());
    co_return report;
  }
  steps.good("connect", name + " answers");
  steps.good("authenticate", "the host key and the login were accepted");
  const Result<ssh::HostFacts> place = co_await (*connection)->survey(config.remote_workspace_path);
  if (!place) {
    const bool writable = place.error().code == Errc::remote_unsupported;
    steps.bad(writable ? "keeper" : "workspace", place.error());
    co_return report;
  }
  steps.good("workspace", place->cwd + " can be written");
  add_keeper(steps, *place);
  report.details->insert_or_assign("remoteCwd", place->cwd);
  report.details->insert_or_assign("system", place->system);
  report.details->insert_or_assign("machine", place->machine);
  report.details->insert_or_assign("supervision", place->keeper ? "keeper" : "sh");
  if (!request.callback.candidates.empty()) {
    const Result<std::string> origin = co_await callback_from(**connection, request.callback);
    if (origin) steps.good("callback", "the host reaches this server as " + *origin);
    if (!origin) steps.bad("callback", origin.error());
    if (origin) report.details->insert_or_assign("apiUrl", *origin);
  }
  if (report.ok) report.summary = "Connected to " + name + "; commands run in " + place->cwd + ".";
  co_return report;
}

}  // namespace berth::places
