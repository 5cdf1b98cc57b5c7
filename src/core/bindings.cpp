#include "core/bindings.hpp"

#include <charconv>

namespace berth::core {
namespace {

constexpr std::string_view redacted_placeholder = "***REDACTED***";

std::string_view view(const bj::string& text) {
  return {text.data(), text.size()};
}

std::optional<std::string> parse_version(const bj::value& in) {
  if (in.is_string() && in.get_string() == "latest") return "latest";
  if (in.is_int64() && in.get_int64() > 0) return std::to_string(in.get_int64());
  return std::nullopt;
}

}  // namespace

bj::object to_json(const SecretRef& ref) {
  bj::value version = bj::string(ref.version);
  std::int64_t number = 0;
  const char* end = ref.version.data() + ref.version.size();
  if (std::from_chars(ref.version.data(), end, number).ec == std::errc{}) version = number;
  return {{"type", "secret_ref"}, {"secretId", ref.secret_id.str()}, {"version", version}};
}

std::optional<SecretRef> parse_secret_ref(const bj::value& in, const JsonAt& at,
                                          JsonIssues& issues) {
  const bj::object* object = in.if_object();
  const bj::value* type = object != nullptr ? object->if_contains("type") : nullptr;
  if (type == nullptr || *type != "secret_ref") {
    issues.add(at, R"(is no secret reference ({"type": "secret_ref", "secretId": ID}))");
    return std::nullopt;
  }
  std::optional<SecretRef> ref;
  if (const bj::value* id = object->if_contains("secretId")) {
    auto parsed = decode_at<SecretId>(*id, JsonAt{at, "secretId"}, issues);
    if (parsed) ref = SecretRef{*std::move(parsed)};
  } else {
    issues.add(JsonAt{at, "secretId"}, "is required");
  }
  for (const auto& [key, value] : *object) {
    const std::string_view name = key;
    if (name == "version") {
      const auto version = parse_version(value);
      if (!version) issues.add(JsonAt{at, name}, R"(is neither "latest" nor a positive integer)");
      if (version && ref) ref->version = *version;
    } else if (name != "type" && name != "secretId") {
      issues.add(JsonAt{at, name}, "is not a known field");
    }
  }
  return ref;
}

bool is_env_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || !letter(name.front())) return false;
  return std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool looks_sensitive(std::string_view name) {
  std::string lower{name};
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr std::string_view marks[] = {"key",    "token",         "secret", "password",
                                        "passwd", "authorization", "cookie", "credential"};
  return std::ranges::any_of(marks, [&](std::string_view mark) { return lower.contains(mark); });
}

Result<EnvVars> normalize_env_vars(const bj::object& in, PlainSecrets plain, std::string_view at) {
  EnvVars out;
  JsonIssues issues;
  const JsonAt root;
  const JsonAt here{root, at.substr(1)};
  for (const auto& [key, value] : in) {
    const std::string_view name = key;
    const JsonAt field{here, name};
    if (!is_env_name(name)) {
      issues.add(
          field,
          "is no name of an environment variable (letters, digits and _, not a digit first)");
      continue;
    }
    const bj::object* object = value.if_object();
    const bj::value* kind = object != nullptr ? object->if_contains("type") : nullptr;
    const bj::value* text =
        kind != nullptr && *kind == "plain" ? object->if_contains("value") : &value;
    if (text != nullptr && text->is_string()) {
      if (view(text->get_string()) == redacted_placeholder) {
        issues.add(field, "is the placeholder of a redacted value; send the value or leave it out");
      } else if (text->get_string().find('\0') != bj::string::npos) {
        issues.add(field, "holds a NUL byte");
      } else if (plain == PlainSecrets::refused && looks_sensitive(name)) {
        issues.add(field, "looks like a secret and must be a secret reference");
      } else {
        out.canonical[name] = bj::object{{"type", "plain"}, {"value", *text}};
      }
    } else if (const auto ref = parse_secret_ref(value, field, issues)) {
      out.canonical[name] = to_json(*ref);
      out.refs.push_back({"env." + std::string{name}, *ref});
    }
  }
  if (issues.list().empty()) return out;
  Error error = std::move(issues).to_error();
  error.code = Errc::unprocessable;
  return std::unexpected(std::move(error));
}

}  // namespace berth::core
