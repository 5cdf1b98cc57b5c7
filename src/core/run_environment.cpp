#include "core/run_environment.hpp"

#include "base/json/peek.hpp"
#include "core/output/redaction.hpp"

namespace berth::core {
namespace {

constexpr std::string_view prefixes[] = {"PAPERCLIP_", "BERTH_"};
constexpr std::string_view path_default =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

using Plain = std::map<std::string, std::string>;

Plain defaults_for(const RunFacts& facts) {
  // An empty PATH means that the place sets its variables itself.
  if (facts.path && facts.path->empty()) {
    return facts.home ? Plain{{"HOME", *facts.home}} : Plain{};
  }
  return {{"PATH", facts.path.value_or(std::string{path_default})},
          {"HOME", facts.home.value_or("/")},
          {"LANG", "C.UTF-8"},
          {"TERM", facts.has_terminal ? "xterm-256color" : "dumb"}};
}

// The names without their prefix.
Plain assigned_by(const RunFacts& facts) {
  Plain out{{"COMPANY_ID", facts.company_id.str()}, {"RUN_ID", facts.run_id.str()}};
  const auto set = [&](std::string_view name, const std::optional<std::string>& value) {
    if (value && !value->empty()) out.insert_or_assign(std::string{name}, *value);
  };
  if (facts.agent_id) out["AGENT_ID"] = facts.agent_id->str();
  set("API_URL", facts.api_url);
  for (const auto* name : {"RUN_SCRATCH_DIR", "TASK_SCRATCH_DIR", "SCRATCH_DIR", "TMPDIR"}) {
    set(name, facts.scratch_dir);
  }
  if (facts.workspace) {
    const WorkspaceFacts& workspace = *facts.workspace;
    set("WORKSPACE_CWD", workspace.cwd);
    set("WORKSPACE_SOURCE", workspace.source);
    set("WORKSPACE_STRATEGY", workspace.strategy);
    if (workspace.id) out["WORKSPACE_ID"] = workspace.id->str();
    set("WORKSPACE_REPO_URL", workspace.repo_url);
    set("WORKSPACE_REPO_REF", workspace.repo_ref);
    set("WORKSPACE_BRANCH", workspace.branch);
    set("WORKSPACE_WORKTREE_PATH", workspace.worktree_path);
  }
  return out;
}

// Merges the layers: the last one that sets a name decides whether it is plain or secret.
class Merge {
 public:
  explicit Merge(Plain defaults) : plain_(std::move(defaults)) {
    for (const auto& [name, value] : plain_) own_.insert(name);
  }

  Result<> add(const EnvLayer& layer) {
    BERTH_TRY(const EnvVars vars,
              normalize_env_vars(layer.vars, PlainSecrets::allowed,
                                 "/" + std::string{name_of(layer.owner)} + "/env"));
    for (const auto& [key, binding] : vars.canonical) {
      const std::string name{key};
      plain_.erase(name);
      own_.erase(name);
      secrets_.erase(name);
      if (auto value = peek<std::string>(binding, "value")) plain_.emplace(name, *std::move(value));
    }
    for (const BoundRef& bound : vars.refs) {
      const std::string name = bound.path.substr(std::string_view{"env."}.size());
      secrets_.emplace(name,
                       SecretVariable{name, bound.ref, layer.owner, layer.owner_id, bound.path});
    }
    return {};
  }

  bool holds(const std::string& name) const {
    return plain_.contains(name) || secrets_.contains(name);
  }
  bool drop(const std::string& name) { return plain_.erase(name) + secrets_.erase(name) > 0; }
  void assign(const std::string& name, const std::string& value) {
    plain_[name] = value;
    // A repository URL is user config and may contain a password.
    if (!name.ends_with("_REPO_URL")) own_.insert(name);
  }

  RunEnvironment take() && {
    RunEnvironment out{.plain = std::move(plain_),
                       .own = std::move(own_),
                       .secrets = {},
                       .token_names = {},
                       .ignored = {}};
    for (auto& [name, secret] : secrets_) out.secrets.push_back(std::move(secret));
    return out;
  }

 private:
  Plain plain_;
  std::set<std::string> own_;
  std::map<std::string, SecretVariable> secrets_;
};

Result<> check_size(const RunEnvironment& environment) {
  std::size_t total = 0;
  for (const auto& [name, value] : environment.plain) {
    const std::size_t size = name.size() + 1 + value.size() + 1;
    if (size > variable_bytes_max) {
      return fail(Errc::unprocessable,
                  "environment variable " + in_quotes(name) + " has " +
                      std::to_string(value.size()) + " bytes; a process takes at most " +
                      std::to_string(variable_bytes_max) + " with its name",
                  "put large values into a file of the workspace, or on stdin");
    }
    total += size;
  }
  if (total <= environment_bytes_max) return {};
  return fail(Errc::unprocessable,
              "the environment variables have " + std::to_string(total) +
                  " bytes together; the limit is " + std::to_string(environment_bytes_max),
              "put large values into a file of the workspace, or on stdin");
}

}  // namespace

Result<RunEnvironment> build_run_environment(const RunFacts& facts,
                                             const std::vector<EnvLayer>& layers) {
  Merge merge{defaults_for(facts)};
  for (const EnvLayer& layer : layers) BERTH_DO(merge.add(layer));

  std::vector<std::string> ignored;
  std::vector<std::string> token_names;
  for (const std::string_view prefix : prefixes) {
    // A configured token would let one run act as another.
    const std::string token = std::string{prefix} + "API_KEY";
    if (merge.drop(token)) ignored.push_back(token);
    if (facts.api_url) token_names.push_back(token);
    for (const auto& [suffix, value] : assigned_by(facts)) {
      const std::string name = std::string{prefix} + suffix;
      if (merge.drop(name)) ignored.push_back(name);
      merge.assign(name, value);
    }
  }
  for (const char* name : {"TMPDIR", "TMP", "TEMP"}) {
    if (facts.scratch_dir && !merge.holds(name)) merge.assign(name, *facts.scratch_dir);
  }

  RunEnvironment out = std::move(merge).take();
  out.token_names = std::move(token_names);
  out.ignored = std::move(ignored);
  BERTH_DO(check_size(out));
  return out;
}

std::string path_with(const std::vector<std::string>& first,
                      const std::optional<std::string>& rest) {
  std::string path;
  for (const std::string& folder : first) path += folder + ":";
  return path + rest.value_or(std::string{path_default});
}

bj::object shown_environment(const RunEnvironment& environment) {
  std::map<std::string, std::string_view> shown;
  for (const auto& [name, value] : environment.plain) {
    shown[name] = environment.own.contains(name) ? std::string_view{value} : redaction_mark;
  }
  for (const SecretVariable& secret : environment.secrets) shown[secret.name] = redaction_mark;
  for (const std::string& name : environment.token_names) shown[name] = redaction_mark;
  bj::object out;
  for (const auto& [name, value] : shown) out.emplace(name, bj::string(value));
  return out;
}

}  // namespace berth::core
