#include "core/config/adapter_config.hpp"

#include "base/json/peek.hpp"
#include "core/config/adapter_schema.hpp"

namespace berth::core {
namespace {

void refuse_unknown_keys(AdapterType adapter, const bj::object& config, const bj::object& stored,
                         JsonIssues& issues) {
  const bj::object known = adapter_config_schema(adapter).at("properties").as_object();
  const JsonAt root;
  for (const auto& [key, value] : config) {
    const std::string_view name = key;
    if (known.contains(name) || stored.contains(name)) continue;
    std::string why = "is not a setting of " + std::string{name_of(adapter)};
    if (const auto near = nearest_key(known, name)) why += "; did you mean " + *near + "?";
    issues.add(JsonAt{root, name}, std::move(why));
  }
}

}  // namespace

Result<AdapterConfigForStore> normalize_adapter_config(AdapterType adapter,
                                                       const bj::object& config, PlainSecrets plain,
                                                       const bj::object& stored) {
  JsonIssues issues{UnknownKeys::ignore, "/adapterConfig"};
  refuse_unknown_keys(adapter, config, stored, issues);
  check_adapter_fields(adapter, config, issues);
  if (!issues.list().empty()) {
    return std::unexpected(std::move(issues).to_error(Errc::unprocessable));
  }
  AdapterConfigForStore out{.config = config, .refs = {}};
  if (const bj::object* env = object_in(config, "env")) {
    BERTH_TRY(EnvVars vars, normalize_env_vars(*env, plain, "/adapterConfig/env"));
    out.config["env"] = std::move(vars.canonical);
    out.refs = std::move(vars.refs);
  }
  return out;
}

}  // namespace berth::core
