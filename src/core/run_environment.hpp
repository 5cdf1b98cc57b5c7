#pragma once

#include "core/config/bindings.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

#include <map>
#include <set>

// The environment variables of a process that Berth starts, built from scratch: none come from the
// server's own environment.
namespace berth::core {

// The workspace as the process sees it: paths in the place where it runs, never on the server.
struct WorkspaceFacts {
  std::string cwd;
  std::optional<std::string> source = {};
  std::optional<std::string> strategy = {};
  std::optional<WorkspaceId> id = {};
  std::optional<std::string> repo_url = {};
  std::optional<std::string> repo_ref = {};
  std::optional<std::string> branch = {};
  std::optional<std::string> worktree_path = {};
};

// What Berth passes to every process it starts. Each becomes PAPERCLIP_X and BERTH_X.
struct RunFacts {
  CompanyId company_id;
  RunId run_id;
  std::optional<AgentId> agent_id = {};
  std::optional<std::string> api_url = {};  // absent: the place cannot reach the server
  std::optional<WorkspaceFacts> workspace = {};
  std::optional<std::string> scratch_dir = {};  // also TMPDIR, TMP and TEMP unless configured
  std::optional<std::string> home = {};
  std::optional<std::string> path = {};  // PATH of a login in the place; absent: the default
  bool has_terminal = false;
};

// Configured variables and their owner: secrets are resolved for this owner.
struct EnvLayer {
  SecretTarget owner = SecretTarget::run;
  std::string owner_id;
  bj::object vars;  // names to plain strings or bindings
};

// A variable whose value the engine fetches just before the process starts.
struct SecretVariable {
  std::string name;
  SecretRef ref;
  SecretTarget owner = SecretTarget::run;
  std::string owner_id;
  std::string config_path;  // "env.API_TOKEN": the path of the owner's secret binding

  friend bool operator==(const SecretVariable&, const SecretVariable&) = default;
};

struct RunEnvironment {
  std::map<std::string, std::string> plain;
  // Names in `plain` whose values Berth itself assigned: ids, paths, defaults.
  std::set<std::string> own = {};
  std::vector<SecretVariable> secrets;
  // Names that receive the run's token, if the process may call back.
  std::vector<std::string> token_names;
  // Configured names that were dropped because Berth assigns them; worth a run event.
  std::vector<std::string> ignored;
};

// The Linux limit for one "NAME=value", and our limit for all together.
inline constexpr std::size_t variable_bytes_max = 128UL * 1024 - 1;
inline constexpr std::size_t environment_bytes_max = 1024UL * 1024;

// Defaults, then each layer over the previous one (environment, agent, run), then what Berth
// assigns. An invalid name, a value with NUL, and an environment too large for a process are the
// caller's errors (`unprocessable`).
Result<RunEnvironment> build_run_environment(const RunFacts& facts,
                                             const std::vector<EnvLayer>& layers);

// A PATH that begins with these folders, followed by the place's own.
std::string path_with(const std::vector<std::string>& first,
                      const std::optional<std::string>& rest);

// For a run event: every name, and the values that Berth itself assigned. A configured value may be
// a password under any name, and more people read events than config.
bj::object shown_environment(const RunEnvironment& environment);

}  // namespace berth::core
