#include "core/config/bindings.hpp"

#include "base/json/peek.hpp"

#include <charconv>

namespace berth::core {
namespace {

constexpr std::string_view redacted_placeholder = "***REDACTED***";

std::string_view view(const bj::string& text) {
  return {text.data(), text.size()};
}

bool says_type(const bj::value& value, std::string_view type) {
  return peek<std::string>(value, "type") == type;
}

// The text of "text" or {"type": "plain", "value": "text"}; null for any other form.
const bj::string* plain_text(const bj::value& value) {
  if (value.is_string()) return &value.get_string();
  if (!says_type(value, "plain") || value.get_object().size() != 2) return nullptr;
  const bj::value* text = value.get_object().if_contains("value");
  return text != nullptr ? text->if_string() : nullptr;
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
  const auto [stop, error] = std::from_chars(ref.version.data(), end, number);
  if (error == std::errc{} && stop == end) version = number;
  return {{"type", "secret_ref"}, {"secretId", ref.secret_id.str()}, {"version", version}};
}

std::optional<SecretRef> parse_secret_ref(const bj::value& in, const JsonAt& at,
                                          JsonIssues& issues) {
  if (!says_type(in, "secret_ref")) {
    issues.add(at, R"(is not a secret reference ({"type": "secret_ref", "secretId": ID}))");
    return std::nullopt;
  }
  const bj::object& object = in.get_object();
  std::optional<SecretRef> ref;
  if (const bj::value* id = object.if_contains("secretId")) {
    auto parsed = decode_at<SecretId>(*id, JsonAt{at, "secretId"}, issues);
    if (parsed) ref = SecretRef{*std::move(parsed)};
  } else {
    issues.add(JsonAt{at, "secretId"}, "is required");
  }
  for (const auto& [key, value] : object) {
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
  JsonIssues issues{UnknownKeys::refuse, std::string{at}};
  const JsonAt root;
  for (const auto& [key, value] : in) {
    const std::string_view name = key;
    const JsonAt field{root, name};
    const auto wrong = [&](std::string_view sentence) {
      issues.add(field, std::string{sentence} + ": " + as_utf8(clipped(name, 64)));
    };
    const bj::string* text = plain_text(value);
    if (!is_env_name(name)) {
      wrong("Invalid environment variable name");
    } else if (says_type(value, "secret_ref")) {
      if (const auto ref = parse_secret_ref(value, field, issues)) {
        out.canonical[name] = to_json(*ref);
        out.refs.push_back({"env." + std::string{name}, *ref});
      }
    } else if (text == nullptr || text->find('\0') != bj::string::npos) {
      wrong("Invalid environment binding for key");
    } else if (view(*text) == redacted_placeholder) {
      wrong("Refusing to persist redacted placeholder for key");
    } else if (plain == PlainSecrets::refused && looks_sensitive(name)) {
      wrong("Strict secret mode requires secret references for sensitive key");
    } else {
      out.canonical[name] = bj::object{{"type", "plain"}, {"value", *text}};
    }
  }
  if (issues.list().empty()) return out;
  return std::unexpected(std::move(issues).to_error(Errc::unprocessable));
}

}  // namespace berth::core
