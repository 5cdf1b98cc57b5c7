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

constexpr double number_max = 1e9;

// Text that can stand in an argv, where NUL is the end.
bool is_text(const bj::value& value) {
  return value.is_string() && value.get_string().find('\0') == bj::string::npos;
}

bool is_text_list(const bj::value& value) {
  return value.is_array() && std::ranges::all_of(value.get_array(), is_text);
}

bool is_amount(const bj::value& value) {
  if (!value.is_number()) return false;
  const auto number = value.to_number<double>();
  return number >= 0 && number <= number_max;
}

void check(const bj::object& config, std::span<const Field> fields, const JsonAt& at,
           JsonIssues& issues) {
  for (const Field& field : fields) {
    const bj::value* value = config.if_contains(field.key);
    if (value == nullptr || value->is_null()) continue;
    const JsonAt here{at, field.key};
    switch (field.shape) {
      case Shape::text:
        if (!is_text(*value)) issues.add(here, "is no string without NUL");
        break;
      case Shape::text_list:
        if (!is_text_list(*value)) issues.add(here, "is no list of strings without NUL");
        break;
      case Shape::number:
        if (!is_amount(*value)) issues.add(here, "is no number from 0 to 1000000000");
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
  return std::ranges::all_of(value->get_string(),
                             [](char c) { return std::string_view{" \t\r\n\v\f"}.contains(c); });
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
    return std::unexpected(std::move(issues).to_error(Errc::unprocessable));
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
