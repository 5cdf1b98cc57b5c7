#include "places/local/local.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "keepers/keeper_process.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

// The test of an environment on this machine: runs `true` in its own keeper.
namespace berth::places {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view probe_prefix = "probe-";
// A keeper that is never renewed lives this long; a younger folder may belong to another probe.
constexpr std::time_t probe_stale_s = 2 * keeper::limits::first_deadline_ms / 1000;

// Removes what a server that was killed during a probe left.
void remove_stale_probes(const std::string& root) {
  const auto names = names_in(root);
  if (!names) return;
  for (const std::string& name : *names) {
    struct stat found{};
    std::string path = root;
    path.append("/").append(name);
    const bool is_stale = name.starts_with(probe_prefix) && ::stat(path.c_str(), &found) == 0 &&
                          ::time(nullptr) - found.st_mtime > probe_stale_s;
    if (!is_stale) continue;
    // Removal is not what is tested here, so it is left to the next probe.
    if (const Result<> removed = remove_tree(path); !removed) {
      log::warn("probe.not_removed", {{"folder", path}, {"error", removed.error().message}});
    }
  }
}

Result<std::string> make_probe_folder(const std::string& root) {
  BERTH_DO(make_directories(root, 0700));
  remove_stale_probes(root);
  std::string path = root + "/" + std::string{probe_prefix} + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return io_failure("make a folder in", root, errno);
  BERTH_DO(create_file(path + "/file", "berth\n", 0600));
  return path;
}

std::string host_name() {
  utsname here{};
  return ::uname(&here) == 0 ? std::string{here.nodename} : std::string{};
}

class LocalSteps {
 public:
  explicit LocalSteps(ProbeReport& report) : report_(report) {}

  void add(std::string name, const std::optional<Error>& error, const std::string& message) {
    const auto now = std::chrono::steady_clock::now();
    ProbeStep step{
        .name = std::move(name),
        .ok = !error,
        .duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_).count(),
        .message = error ? error->message : message};
    if (error) {
      step.code = name_of(error->code);
      if (!error->remedy.empty()) step.remedy = error->remedy;
      report_.summary = "This machine cannot run commands: " + error->message;
    }
    report_.ok = step.ok;
    report_.steps.push_back(std::move(step));
    since_ = now;
  }

 private:
  ProbeReport& report_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

std::optional<Error> error_of(const auto& result) {
  if (result) return std::nullopt;
  return result.error();
}

}  // namespace

Task<ProbeReport> Local::probe(const AcquireRequest& /*request*/) {
  ProbeReport report{.driver = core::DriverKind::local};
  LocalSteps steps{report};
  const Result<std::string> folder = co_await offload(
      pool_, [root = keepers_.options().state_root] { return make_probe_folder(root); });
  steps.add("workspace", error_of(folder), "A folder of a lease can be written.");
  if (!folder) co_return report;
  const Result<std::string> version = co_await try_keeper(*folder);
  steps.add("keeper", error_of(version), "The keeper has run a command.");
  const Result<> removed = co_await offload(pool_, [path = *folder] { return remove_tree(path); });
  if (version && removed) {
    report.summary = "This machine can run commands.";
    report.details = bj::object{{"hostname", host_name()},
                                {"cwd", keepers_.options().state_root},
                                {"keeperVersion", *version}};
  } else if (version) {
    steps.add("cleanup", removed.error(), {});
  }
  co_return report;
}

Task<std::string> Local::try_keeper(std::string folder) {
  const keepers::KeptFolder place{.path = folder};
  BERTH_CO_TRY(keepers::KeeperAt at, co_await offload(pool_, [place, options = keepers_.options()] {
                 return keepers::find_or_start_keeper(place, options.keeper_program,
                                                      options.keeper_environment);
               }));
  probes_.start("keeper.reap", keepers::reap(executor_, at.child));
  keepers::KeeperLink link{executor_, probes_, {.in = std::move(at.socket), .name = "probe"}};
  const keeper::Exec command{.exec_id = "probe",
                             .argv = {"true"},
                             .environment = {"PATH=/usr/local/bin:/usr/bin:/bin"},
                             .cwd = folder,
                             .deadline_ms = 20'000};
  BERTH_CO_DO(co_await link.ask<keeper::Started>(command));
  BERTH_CO_TRY(const keeper::Ended ended,
               co_await link.ask<keeper::Ended>(keeper::Wait{.exec_id = command.exec_id}));
  BERTH_CO_TRY(const keeper::FoundKeeper found,
               co_await offload(pool_, [place] { return keeper::look_at_keeper(place.keeper()); }));
  BERTH_CO_DO(co_await link.ask<keeper::Done>(keeper::Stop{.grace_ms = 0}));
  BERTH_CO_DO(co_await link.wait_for_end(keepers::KeeperLink::usual_limit));
  if (ended.outcome != keeper::Outcome::exited || ended.code != 0) {
    co_return fail(Errc::command_failed, "the command true has failed on this machine");
  }
  co_return found.identity.version;
}

}  // namespace berth::places
