#include "core/config/provider_config.hpp"

#include "base/json/peek.hpp"
#include "base/strings.hpp"
#include "base/text.hpp"

namespace berth::core {
namespace {

constexpr std::string_view known_to_berth[] = {"provider", "timeoutMs", "reuseLease",
                                               "streamRunLogs", "archiveOnRelease"};

bool is_reference(const bj::value& value) {
  return peek<std::string>(value, "type") == "secret_ref";
}

std::optional<SecretRef> reference_of(const bj::value& value) {
  if (!is_reference(value)) return std::nullopt;
  JsonIssues issues;
  return parse_secret_ref(value, JsonAt{}, issues);
}

// Normalizes the value at a secret's path, as the plugin and the store expect it.
Result<> settle_secret(bj::object& config, const ConfigPath& path, std::string_view at) {
  const bj::value value = *find_at(config, path);
  if (const bj::string* const text = value.if_string()) {
    std::string plain{trimmed(*text)};
    if (plain.empty()) {
      erase_at(config, path);
    } else {
      set_at(config, path, bj::value(std::move(plain)));
    }
    return {};
  }
  if (!is_reference(value)) return {};
  const std::string place = std::string{at} + path.pointer();
  const std::optional<SecretRef> ref = reference_of(value);
  if (!ref) {
    return std::unexpected(Error{Errc::unprocessable,
                                 place + ": is not a secret reference",
                                 "",
                                 {{place, "is not a secret reference"}}});
  }
  if (ref->version != "latest") {
    const std::string why = "Secret binding at " + path.text() + " pins version " + ref->version +
                            "; sandbox provider secret references always resolve the latest "
                            "version.";
    return std::unexpected(
        Error{Errc::unprocessable, why, "leave the version out", {{place, why}}});
  }
  set_at(config, path, bj::value(ref->secret_id.str()));
  return {};
}

void collect_refs(const bj::value& value, const ConfigPath& at, std::vector<BoundRef>& out) {
  if (std::optional<SecretRef> ref = reference_of(value)) {
    out.push_back({at.text(), *std::move(ref)});
  } else if (const bj::object* const object = value.if_object()) {
    for (const auto& [key, field] : *object) collect_refs(field, at / key, out);
  } else if (const bj::array* const list = value.if_array()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      collect_refs((*list)[i], at / std::to_string(i), out);
    }
  }
}

ConfigPath joint_path(const ConfigPath& left, const ConfigPath& right) {
  ConfigPath out = left;
  for (const std::string& step : right.steps()) out = out / step;
  return out;
}

}  // namespace

Result<bj::object> apply_schema(const ConfigSchema& schema, bj::object config,
                                std::string_view at) {
  for (const ConfigPath& path : schema.secrets_in(config)) {
    BERTH_DO(settle_secret(config, path, at));
  }
  config = schema.with_defaults(std::move(config));
  bj::object judged = config;
  for (const std::string_view key : known_to_berth) {
    if (!schema.declares(key)) judged.erase(key);
  }
  BERTH_DO(schema.check(judged, at));
  return config;
}

ConfigForStore take_secrets(const ConfigSchema& schema, bj::object config, const ConfigPath& part) {
  ConfigForStore out{.config = std::move(config), .refs = {}, .values = {}};
  out.shape = RefShape::bare_id;
  bj::object described = out.config;
  if (!part.steps().empty()) {
    const bj::value* const found = find_at(out.config, part);
    described = found != nullptr && found->is_object() ? found->get_object() : bj::object{};
  }
  for (const ConfigPath& inner : schema.secrets_in(described)) {
    const bj::value* const value = find_at(described, inner);
    if (value == nullptr || !value->is_string()) continue;
    const ConfigPath path = joint_path(part, inner);
    const std::string text{value->get_string()};
    if (const Result<SecretId> id = SecretId::parse(text)) {
      out.refs.push_back({path.text(), {.secret_id = *id}});
    } else {
      out.values.push_back({path.text(), Secret{text}});
      set_at(out.config, path, nullptr);
    }
  }
  return out;
}

std::vector<BoundRef> refs_in(const bj::object& config) {
  std::vector<BoundRef> out;
  for (const auto& [key, value] : config) collect_refs(value, ConfigPath{} / key, out);
  return out;
}

bj::object spell_out_refs(bj::object config, const std::vector<BoundRef>& refs) {
  for (const BoundRef& bound : refs) {
    const ConfigPath path = ConfigPath::parse(bound.path);
    const bj::value* const value = find_at(config, path);
    const bool bare = value != nullptr && value->is_string() &&
                      std::string_view{value->get_string()} == bound.ref.secret_id.str();
    if (bare) set_at(config, path, to_json(bound.ref));
  }
  return config;
}

bj::object with_secrets(bj::object config, const std::map<std::string, Secret>& values) {
  for (const auto& [path, value] : values) {
    set_at(config, ConfigPath::parse(path), bj::value(bj::string(value.reveal())));
  }
  return config;
}

}  // namespace berth::core
