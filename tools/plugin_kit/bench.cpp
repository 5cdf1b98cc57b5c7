#include "plugin_kit/bench.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace berth::plugin_kit {
namespace {

constexpr Limit start_limit{15'000};
constexpr std::string_view company_id = "00000000-0000-4000-8000-0000000000c0";

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

// A host with no state, no config and no listeners; it does not know any other method.
std::optional<bj::object> answer_plainly(const bj::object& request) {
  constexpr std::array<std::string_view, 8> taken{
      "state.get",    "state.set",     "state.delete",    "events.subscribe",
      "activity.log", "metrics.write", "telemetry.track", "span.record"};
  const std::string method = text_at(request, "method");
  if (std::ranges::find(taken, method) != taken.end()) return bj::object{{"result", nullptr}};
  if (method == "config.get") return bj::object{{"result", bj::object{}}};
  return bj::object{{"error", {{"code", -32601}, {"message", "unknown method " + method}}}};
}

// Folders on this machine that the lease names and that were made for it.
std::vector<std::string> local_paths(const bj::object& lease, Time since) {
  std::vector<std::string> paths;
  const bj::value* metadata = lease.if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return paths;
  for (const auto& [key, value] : metadata->get_object()) {
    struct stat found{};
    const std::string path = value.is_string() ? std::string{value.get_string()} : std::string{};
    if (!path.starts_with('/') || ::lstat(path.c_str(), &found) != 0) continue;
    // A file system's clock may lag a little.
    if (found.st_ctim.tv_sec * 1000 + 1000 >= since.ms) paths.push_back(path);
  }
  return paths;
}

}  // namespace

Outcome passed() {
  return {};
}

Outcome failed(std::string finding) {
  return {.verdict = Verdict::failed, .finding = std::move(finding)};
}

Outcome skipped(std::string why) {
  return {.verdict = Verdict::skipped, .finding = std::move(why)};
}

std::string text_at(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  return found != nullptr && found->is_string() ? std::string{found->get_string()} : std::string{};
}

Result<WorkerProcess> Bench::spawn() const {
  BERTH_TRY(WorkerProcess worker, WorkerProcess::spawn(subject_.start));
  worker.answer_with(answer_plainly);
  return worker;
}

bj::object Bench::initialize_params() const {
  return {{"manifest", subject_.manifest.document},
          {"config", bj::object{}},
          {"instanceInfo",
           {{"instanceId", "conformance"},
            {"hostVersion", "0.0.0"},
            {"deploymentMode", "local_trusted"},
            {"deploymentExposure", "private"}}},
          {"apiVersion", 1},
          {"databaseNamespace", nullptr}};
}

Result<> Bench::initialize(WorkerProcess& worker) {
  BERTH_TRY(const bj::value answer, worker.ask("initialize", initialize_params(), start_limit));
  const bj::object* object = answer.if_object();
  const bj::value* ok = object != nullptr ? object->if_contains("ok") : nullptr;
  const bj::value* methods = object != nullptr ? object->if_contains("supportedMethods") : nullptr;
  if (ok == nullptr || !ok->is_bool() || !ok->get_bool()) {
    return fail(Errc::plugin_protocol, "initialize was answered without ok: true");
  }
  if (methods == nullptr || !methods->is_array()) {
    return fail(Errc::plugin_protocol, "initialize was answered without a list supportedMethods");
  }
  methods_.clear();
  for (const bj::value& name : methods->get_array()) {
    if (!name.is_string())
      return fail(Errc::plugin_protocol, "supportedMethods must be an array of strings");
    methods_.emplace(name.get_string());
  }
  asks_host_ = asks_host_ || !worker.requests.empty();
  return {};
}

Result<WorkerProcess*> Bench::worker() {
  if (worker_ && !worker_->wait_exit(Limit{0}) && !worker_->stdout_ended) return worker_.get();
  if (worker_) note_end(*worker_);
  worker_.reset();
  BERTH_TRY(WorkerProcess spawned, spawn());
  auto worker = std::make_unique<WorkerProcess>(std::move(spawned));
  const Result<> started = initialize(*worker);
  if (!started) {
    return fail(started.error().code, started.error().message, worker->stderr_tail);
  }
  worker_ = std::move(worker);
  return worker_.get();
}

void Bench::note_end(WorkerProcess& worker) {
  garbage_.insert(garbage_.end(), worker.garbage.begin(), worker.garbage.end());
}

void Bench::kill_worker() {
  if (!worker_) return;
  worker_->kill(SIGKILL);
  worker_->wait_exit(subject_.patience.stop);
  note_end(*worker_);
  worker_.reset();
}

void Bench::retire_worker() {
  if (!worker_) return;
  (void)worker_->ask("shutdown", bj::object{}, subject_.patience.stop);
  worker_->wait_exit(subject_.patience.stop);
  note_end(*worker_);
  worker_.reset();
}

bj::object Bench::params(const bj::object& more) const {
  bj::object params{{"driverKey", subject_.driver.driver_key},
                    {"companyId", company_id},
                    {"environmentId", environment_id_},
                    {"issueId", nullptr},
                    {"config", subject_.config}};
  for (const auto& [key, value] : more) params[key] = value;
  return params;
}

Result<bj::value> Bench::ask(const std::string& method, const bj::object& more, Limit limit) {
  BERTH_TRY(WorkerProcess* const its, worker());
  return its->ask(method, params(more), limit, fresh_id());
}

Result<bj::object> Bench::acquire(const std::string& run_id) {
  const Time since = clock_.now();
  BERTH_TRY(const bj::value answer, ask("environmentAcquireLease", {{"runId", run_id}}));
  if (!answer.is_object() || text_at(answer.get_object(), "providerLeaseId").empty()) {
    return fail(Errc::plugin_protocol, "acquire was answered without a providerLeaseId");
  }
  made_.push_back({.lease = answer.get_object(), .paths = local_paths(answer.get_object(), since)});
  return answer.get_object();
}

Result<> Bench::destroy(const bj::object& lease) {
  const std::string id = text_at(lease, "providerLeaseId");
  bj::object named{{"providerLeaseId", id}};
  if (const bj::value* metadata = lease.if_contains("metadata")) {
    named["leaseMetadata"] = *metadata;
  }
  const char* const method =
      has("environmentDestroyLease") ? "environmentDestroyLease" : "environmentReleaseLease";
  BERTH_DO(ask(method, named));
  return {};
}

Result<> Bench::destroy_and_look(const bj::object& lease) {
  const std::string id = text_at(lease, "providerLeaseId");
  BERTH_DO(destroy(lease));
  std::string left;
  std::erase_if(made_, [&](const Made& made) {
    if (text_at(made.lease, "providerLeaseId") != id) return false;
    for (const std::string& path : made.paths) {
      if (exists(path)) left = path;
    }
    return true;
  });
  if (!left.empty()) {
    return fail(Errc::lease_release_failed, "after destroy of " + id + " there still is " + left);
  }
  return {};
}

Result<bj::object> Bench::execute(const bj::object& lease, const bj::object& command, Limit limit) {
  bj::object more = command;
  more["lease"] = lease;
  if (!more.contains("cwd")) more["cwd"] = cwd_of(lease);
  BERTH_TRY(const bj::value answer, ask("environmentExecute", more, limit));
  if (!answer.is_object()) return fail(Errc::plugin_protocol, "execute was answered by no object");
  for (const char* stream : {"stdout", "stderr"}) {
    const bj::value* text = answer.get_object().if_contains(stream);
    if (text == nullptr || !text->is_string()) {
      return fail(Errc::plugin_protocol, std::string{"execute was answered without "} + stream);
    }
  }
  return answer.get_object();
}

Result<bj::object> Bench::shared_lease() {
  if (shared_lease_) return *shared_lease_;
  BERTH_TRY(shared_lease_, acquire(fresh_id()));
  return *shared_lease_;
}

std::string Bench::cwd_of(const bj::object& lease) const {
  const bj::value* metadata = lease.if_contains("metadata");
  const std::string cwd = metadata != nullptr && metadata->is_object()
                              ? text_at(metadata->get_object(), "remoteCwd")
                              : std::string{};
  return cwd.empty() ? "/tmp" : cwd;
}

std::string Bench::fresh_id() {
  return make_uuid(random_, clock_.now());
}

std::vector<std::string> Bench::clear() {
  std::vector<std::string> left;
  shared_lease_.reset();
  while (!made_.empty()) {
    const bj::object lease = made_.back().lease;
    const std::size_t had = made_.size();
    const Result<> gone = destroy_and_look(lease);
    if (!gone) left.push_back(gone.error().message);
    if (made_.size() == had) made_.pop_back();
  }
  retire_worker();
  return left;
}

std::vector<std::string> Bench::orphans() {
  const auto until = std::chrono::steady_clock::now() + subject_.patience.orphans;
  std::vector<std::string> names;
  while (true) {
    // The kit is the subreaper, so processes that a worker leaves become its children.
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const bool is_over = std::chrono::steady_clock::now() >= until;
    const std::vector<pid_t> left = keeper::descendants_of(::getpid());
    if (left.empty()) return names;
    for (const pid_t pid : left) {
      if (!is_over) continue;
      const auto line = read_file("/proc/" + std::to_string(pid) + "/cmdline", 4096);
      std::string shown = line.value_or("");
      std::ranges::replace(shown, '\0', ' ');
      if (!shown.empty()) names.push_back(shown);
      ::kill(pid, SIGKILL);
    }
    ::poll(nullptr, 0, 20);
  }
}

}  // namespace berth::plugin_kit
