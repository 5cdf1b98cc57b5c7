#include "core/adapter_config.hpp"

namespace berth::core {
namespace {

enum class Shape { text, text_list, number, flag, object };

struct Field {
  std::string_view key;
  Shape shape;
};

// Fields that every adapter has, and those of the command-line agents.
constexpr Field common_fields[] = {{"command", Shape::text},       {"args", Shape::text_list},
                                   {"cwd", Shape::text},           {"timeoutSec", Shape::number},
                                   {"graceSec", Shape::number},    {"env", Shape::object},
                                   {"promptTemplate", Shape::text}};
constexpr Field agent_fields[] = {{"model", Shape::text},
                                  {"extraArgs", Shape::text_list},
                                  {"instructionsFilePath", Shape::text},
                                  {"maxTurnsPerRun", Shape::number},
                                  {"effort", Shape::text},
                                  {"modelReasoningEffort", Shape::text},
                                  {"search", Shape::flag},
                                  {"dangerouslySkipPermissions", Shape::flag},
                                  {"dangerouslyBypassApprovalsAndSandbox", Shape::flag}};

bool is_text_list(const bj::value& value) {
  return value.is_array() && std::ranges::all_of(value.get_array(), [](const bj::value& item) {
           return item.is_string();
         });
}

void check(const bj::object& config, std::span<const Field> fields, const JsonAt& at,
           JsonIssues& issues) {
  for (const Field& field : fields) {
    const bj::value* value = config.if_contains(field.key);
    if (value == nullptr || value->is_null()) continue;
    const JsonAt here{at, field.key};
    switch (field.shape) {
      case Shape::text:
        if (!value->is_string()) issues.add(here, "is no string");
        break;
      case Shape::text_list:
        if (!is_text_list(*value)) issues.add(here, "is no list of strings");
        break;
      case Shape::number:
        if (!value->is_number() || value->to_number<double>() < 0)
          issues.add(here, "is no number from 0");
        break;
      case Shape::flag:
        if (!value->is_bool()) issues.add(here, "is no boolean");
        break;
      case Shape::object:
        if (!value->is_object()) issues.add(here, "is no object");
        break;
    }
  }
}

bool blank(const bj::value* value) {
  if (value == nullptr || !value->is_string()) return true;
  return std::ranges::all_of(value->get_string(), [](char c) { return c == ' ' || c == '\t'; });
}

}  // namespace

Result<AdapterConfigForStore> normalize_adapter_config(AdapterType adapter,
                                                       const bj::object& config,
                                                       PlainSecrets plain) {
  JsonIssues issues;
  const JsonAt root;
  const JsonAt at{root, "adapterConfig"};
  check(config, common_fields, at, issues);
  if (adapter != AdapterType::process) check(config, agent_fields, at, issues);
  if (adapter == AdapterType::process && blank(config.if_contains("command"))) {
    issues.add(JsonAt{at, "command"}, "is required: the program that the agent runs");
  }
  if (!issues.list().empty()) {
    Error error = std::move(issues).to_error();
    error.code = Errc::unprocessable;
    return std::unexpected(std::move(error));
  }
  AdapterConfigForStore out{.config = config, .refs = {}};
  if (const bj::value* env = config.if_contains("env"); env != nullptr && env->is_object()) {
    BERTH_TRY(EnvVars vars, normalize_env_vars(env->get_object(), plain, "/adapterConfig/env"));
    out.config["env"] = std::move(vars.canonical);
    out.refs = std::move(vars.refs);
  }
  return out;
}

}  // namespace berth::core
