#pragma once

#include "core/config/bindings.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

#include <map>
#include <set>

// The environment variables of a process that Berth starts, built from nothing: no variable of the
// server's own environment is among them.
namespace berth::core {

// The workspace as the process sees it: paths of the place where it runs, never of the server.
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

// What Berth tells every process that it starts. Each becomes PAPERCLIP_X and BERTH_X.
struct RunFacts {
  CompanyId company_id;
  RunId run_id;
  std::optional<AgentId> agent_id = {};
  std::optional<std::string> api_url = {};  // absent: the place cannot reach the server
  std::optional<WorkspaceFacts> workspace = {};
  std::optional<std::string> scratch_dir = {};  // also TMPDIR, TMP and TEMP unless they are given
  std::optional<std::string> home = {};
  std::optional<std::string> path = {};  // PATH of a login in the place; absent: the usual one
  bool has_terminal = false;
};

// Variables that somebody configured, and whose they are: a secret is resolved for this owner.
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
  std::string config_path;  // "env.API_TOKEN", under which the secret is bound to its owner

  friend bool operator==(const SecretVariable&, const SecretVariable&) = default;
};

struct RunEnvironment {
  std::map<std::string, std::string> plain;
  // Names in `plain` whose values are Berth's own: ids, paths, defaults. Nobody configured them.
  std::set<std::string> own = {};
  std::vector<SecretVariable> secrets;
  // Names that receive the run's token, when the process may call back.
  std::vector<std::string> token_names;
  // Configured names that were left out because Berth assigns them; worth an event of the run.
  std::vector<std::string> ignored;
};

// The most that Linux takes for one "NAME=value", and what we take in all.
inline constexpr std::size_t variable_bytes_max = 128UL * 1024 - 1;
inline constexpr std::size_t environment_bytes_max = 1024UL * 1024;

// Defaults, then each layer over the one before (environment, agent, run), then what Berth assigns.
// A name that is no name, a value with NUL and an environment that no process can take are errors
// of the caller (`unprocessable`).
Result<RunEnvironment> build_run_environment(const RunFacts& facts,
                                             const std::vector<EnvLayer>& layers);

// A PATH that begins with these folders; what a place has by itself follows.
std::string path_with(const std::vector<std::string>& first,
                      const std::optional<std::string>& rest);

// As an event of the run shows it: every name, and the values that Berth assigned itself. What
// somebody configured may be a password under any name, and more people read events than config.
bj::object shown_environment(const RunEnvironment& environment);

}  // namespace berth::core
