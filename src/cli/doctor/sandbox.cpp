#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "cli/doctor/walls.hpp"
#include "cli/keeper_program.hpp"
#include "keeper/protocol/client.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>

// What the kernel's features amount to: creates a sandbox and reports how strong it is.
namespace berth::cli::doctor {
namespace {

using keeper::sandbox::Level;

Result<keeper::Confined> confine_in(const std::string& folder, const std::string& program,
                                    Level least) {
  BERTH_TRY(keeper::SpawnedKeeper spawned,
            keeper::spawn_keeper({.program = program, .folder = folder}));
  keeper::KeeperClient client{std::move(spawned.control)};
  // The default limits of an environment.
  keeper::sandbox::Plan plan{.min_level = least};
  plan.limits = {.memory_bytes = std::uint64_t{1} << 30, .pids = 256};
  Result<keeper::Confined> confined = client.confine(plan);
  const Result<> stopped = client.stop(std::chrono::milliseconds{0});
  while (::waitpid(spawned.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (confined && !stopped) return std::unexpected(stopped.error());
  return confined;
}

Result<keeper::Confined> try_sandbox(const std::string& program, Level least) {
  std::string folder = "/tmp/berth-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return io_failure("make a folder in", "/tmp", errno);
  Result<keeper::Confined> confined = confine_in(folder, program, least);
  BERTH_DO(remove_tree(folder));
  return confined;
}

std::vector<Finding> findings_about(const keeper::Confined& made, const std::string& prefix) {
  const bool strong = made.level == Level::strong;
  std::string features;
  for (const std::string& one : made.features) features += (features.empty() ? "" : ", ") + one;
  std::vector<Finding> findings{{"sandbox", strong ? Verdict::ok : Verdict::warn,
                                 prefix + std::string{name_of(made.level)} + ": " + features}};
  for (const keeper::Missing& one : made.missing) {
    findings.push_back({"sandbox", strong ? Verdict::note : Verdict::warn,
                        "without " + one.feature + ": " + one.reason, one.remedy});
  }
  return findings;
}

}  // namespace

std::optional<Result<keeper::Confined>> try_sandbox(const Machine& machine) {
  const Result<std::string> program = keeper_program(machine.settings);
  if (!program) return std::nullopt;
  return try_sandbox(*program, Level::weak);
}

std::vector<Finding> check_sandbox(const Machine& machine) {
  const Result<std::string> program = keeper_program(machine.settings);
  if (!program) return {};  // check_keeper reports it
  const Result<keeper::Confined> made = try_sandbox(*program, Level::weak);
  if (made) return findings_about(*made, "isolation ");
  std::vector<Finding> findings{
      {"sandbox", Verdict::warn, "cannot be made: " + made.error().message, made.error().remedy}};
  // What is available to an environment that accepts this level too.
  const Result<keeper::Confined> least = try_sandbox(*program, Level::minimal);
  if (!least) return findings;
  std::ranges::move(findings_about(*least, "with minIsolation: minimal its isolation is "),
                    std::back_inserter(findings));
  return findings;
}

}  // namespace berth::cli::doctor
