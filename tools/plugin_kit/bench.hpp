#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "plugin_kit/report.hpp"
#include "plugin_kit/subject.hpp"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace berth::plugin_kit {

struct Outcome {
  Verdict verdict = Verdict::passed;
  std::string finding = {};
};
Outcome passed();
Outcome failed(std::string finding);
Outcome skipped(std::string why);

// For use inside a check: returns from it when a step fails.
#define BERTH_CHECK_TRY(decl, ...)                                              \
  auto BERTH_FRESH(check_) = (__VA_ARGS__);                                     \
  if (!BERTH_FRESH(check_)) return failed(BERTH_FRESH(check_).error().message); \
  decl = *std::move(BERTH_FRESH(check_))
#define BERTH_CHECK_DO(...)                                           \
  if (auto BERTH_FRESH(check_) = (__VA_ARGS__); !BERTH_FRESH(check_)) \
  return failed(BERTH_FRESH(check_).error().message)
#define BERTH_CHECK_THAT(condition, finding) \
  if (!(condition)) return failed(finding)

using Limit = WorkerProcess::Limit;
inline constexpr Limit quick{30'000};
inline constexpr Limit patient{180'000};  // for calls that may have to create a machine

// Where a plugin is examined. Holds its worker, restarted after a check ended it, and everything
// that was created and must be removed.
class Bench {
 public:
  explicit Bench(Subject subject) : subject_(std::move(subject)) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const Subject& subject() const { return subject_; }
  // A separate worker, not initialized.
  Result<WorkerProcess> spawn() const;
  Result<> initialize(WorkerProcess& worker);
  bj::object initialize_params() const;

  // The shared worker.
  Result<WorkerProcess*> worker();
  void kill_worker();
  // Ends the worker in order; its output is still checked.
  void retire_worker();

  // What the plugin advertises, from its first start.
  bool has(const std::string& method) const { return methods_.contains(method); }
  const std::set<std::string>& methods() const { return methods_; }

  // The parameters of an environment call, plus `more`.
  bj::object params(const bj::object& more = {}) const;
  Result<bj::value> ask(const std::string& method, const bj::object& more, Limit limit = patient);
  Result<bj::object> acquire(const std::string& run_id);
  // For a lease whose response was lost, pass the one that the same run acquired again.
  Result<> destroy(const bj::object& lease);
  // Fails when a part of the lease still exists.
  Result<> destroy_and_look(const bj::object& lease);
  Result<bj::object> execute(const bj::object& lease, const bj::object& command,
                             Limit limit = patient);
  // The lease shared by checks that do not change it.
  Result<bj::object> shared_lease();
  std::string cwd_of(const bj::object& lease) const;
  std::string fresh_id();

  // Releases everything that is left, and returns what could not be released.
  std::vector<std::string> clear();
  // Processes that a worker left behind and that do not end by themselves. They are killed.
  std::vector<std::string> orphans();
  const std::vector<std::string>& garbage() const { return garbage_; }
  // Whether any worker sent its host a request while it started.
  bool asks_host() const { return asks_host_; }

 private:
  struct Made {
    bj::object lease;
    std::vector<std::string> paths;  // on this machine, made with the lease
  };
  void note_end(WorkerProcess& worker);

  Subject subject_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<WorkerProcess> worker_;
  std::set<std::string> methods_;
  std::vector<Made> made_;
  std::optional<bj::object> shared_lease_;
  std::string environment_id_ = fresh_id();
  std::vector<std::string> garbage_;
  bool asks_host_ = false;
};

// A string member of a response; empty when absent.
std::string text_at(const bj::object& object, std::string_view key);

}  // namespace berth::plugin_kit
