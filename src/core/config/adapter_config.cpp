#include "core/config/adapter_config.hpp"

#include "core/config/adapter_schema.hpp"
#include "core/config/adapters.hpp"

namespace berth::core {
namespace {

constexpr double number_max = 1e9;

// Text that can be an argv entry, where NUL would end it.
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

bool is_choice(const AdapterField& field, const bj::value& value) {
  if (!value.is_string()) return false;
  const std::string_view text = value.get_string();
  const auto choices = choices_of(field);
  return std::ranges::find(choices, text) != choices.end();
}

std::string choices_text(const AdapterField& field) {
  std::string out;
  for (const std::string_view name : choices_of(field)) {
    out += (out.empty() ? "" : ", ") + std::string{name};
  }
  return out;
}

// Directories that can be in a PATH, where a colon separates entries.
bool is_folder_list(const bj::value& value) {
  return is_text_list(value) && std::ranges::all_of(value.get_array(), [](const bj::value& one) {
           const bj::string& path = one.get_string();
           return path.starts_with("/") && path.find(':') == bj::string::npos;
         });
}

std::optional<std::string> wrong_with(const AdapterField& field, const bj::value& value) {
  const auto unless = [](bool fits, std::string why) {
    return fits ? std::nullopt : std::optional{std::move(why)};
  };
  switch (field.shape) {
    case FieldShape::text:
    case FieldShape::long_text: return unless(is_text(value), "is not a string without NUL");
    case FieldShape::text_list:
      return unless(is_text_list(value), "is not a list of strings without NUL");
    case FieldShape::folder_list:
      return unless(is_folder_list(value), "is not a list of absolute paths without ':'");
    case FieldShape::number:
      return unless(is_amount(value), "is not a number from 0 to 1000000000");
    case FieldShape::flag: return unless(value.is_bool(), "is not a boolean");
    case FieldShape::object: return unless(value.is_object(), "is not an object");
    case FieldShape::choice:
      return unless(is_choice(field, value), "is not one of " + choices_text(field));
  }
  return std::nullopt;
}

void check(const bj::object& config, std::span<const AdapterField> fields, const JsonAt& at,
           JsonIssues& issues) {
  for (const AdapterField& field : fields) {
    const bj::value* value = config.if_contains(field.key);
    if (value == nullptr || value->is_null()) continue;
    if (auto why = wrong_with(field, *value)) issues.add(JsonAt{at, field.key}, *std::move(why));
  }
}

void check_keys(AdapterType adapter, const bj::object& config, const bj::object& stored,
                std::span<const AdapterField> fields, const JsonAt& at, JsonIssues& issues) {
  for (const auto& [key, value] : config) {
    const std::string_view name = key;
    const bool is_known = std::ranges::find(fields, name, &AdapterField::key) != fields.end();
    if (is_known || stored.contains(name)) continue;
    std::string why = "is not a setting of " + std::string{name_of(adapter)};
    if (const auto near = nearest_key(fields, name)) why += "; did you mean " + *near + "?";
    issues.add(JsonAt{at, name}, std::move(why));
  }
}

bool blank(const bj::value* value) {
  if (value == nullptr || !value->is_string()) return true;
  return std::ranges::all_of(value->get_string(),
                             [](char c) { return std::string_view{" \t\r\n\v\f"}.contains(c); });
}

// Instructions are one argument of the program, or precede its prompt.
Result<> check_instructions(const bj::object& config) {
  const bj::value* text = config.if_contains("instructions");
  if (text == nullptr || !text->is_string() ||
      text->get_string().size() <= instructions_bytes_max) {
    return {};
  }
  return fail(Errc::unprocessable,
              "/adapterConfig/instructions: has " + std::to_string(text->get_string().size()) +
                  " bytes; the limit is " + std::to_string(instructions_bytes_max),
              "put the rest into a file of the workspace and name it in the instructions");
}

}  // namespace

Result<AdapterConfigForStore> normalize_adapter_config(AdapterType adapter,
                                                       const bj::object& config, PlainSecrets plain,
                                                       const bj::object& stored) {
  JsonIssues issues;
  const JsonAt root;
  const JsonAt at{root, "adapterConfig"};
  const std::vector<AdapterField> fields = adapter_fields(adapter);
  check_keys(adapter, config, stored, fields, at, issues);
  check(config, fields, at, issues);
  if (adapter == AdapterType::process && blank(config.if_contains("command"))) {
    issues.add(JsonAt{at, "command"}, "is required: the program that the agent runs");
  }
  if (!issues.list().empty()) {
    return std::unexpected(std::move(issues).to_error(Errc::unprocessable));
  }
  BERTH_DO(check_instructions(config));
  AdapterConfigForStore out{.config = config, .refs = {}};
  if (const bj::value* env = config.if_contains("env"); env != nullptr && env->is_object()) {
    BERTH_TRY(EnvVars vars, normalize_env_vars(env->get_object(), plain, "/adapterConfig/env"));
    out.config["env"] = std::move(vars.canonical);
    out.refs = std::move(vars.refs);
  }
  return out;
}

}  // namespace berth::core
