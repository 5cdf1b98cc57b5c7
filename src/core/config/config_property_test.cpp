// Of every declared config, the schema and the decoder accept the same values.
#include "core/config/adapter_schema.hpp"
#include "core/config/config_schema.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "core/values_fixture.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace berth::core {
namespace {

struct Declared {
  std::string name;
  bj::object schema;
  // A config that is right, with what the rules between fields need.
  bj::object sound;
  // What the decoder sees of a value: null is absent, and texts are trimmed where forms send them.
  std::function<bj::object(bj::object)> spelled;
  std::function<bool(const bj::object&)> decodes;
};

bool adapter_decodes(AdapterType adapter, const bj::object& config) {
  JsonIssues issues;
  check_adapter_fields(adapter, config, issues);
  return issues.list().empty();
}

template <class Config>
Declared adapter(AdapterType type, std::string_view sound) {
  return {std::string{name_of(type)}, adapter_config_schema(type), json(sound),
          without_nulls<Config>,
          [type](const bj::object& config) { return adapter_decodes(type, config); }};
}

template <class Config>
Declared driver(DriverKind kind, std::string_view sound) {
  return {
      std::string{name_of(kind)}, driver_config_schema(kind), json(sound), as_written<Config>,
      [kind](const bj::object& config) { return normalize_for_probe(kind, config).has_value(); }};
}

bool provider_decodes(std::string provider, bj::object config) {
  config["provider"] = std::move(provider);
  return parse_sandbox_config(config).has_value();
}

std::vector<Declared> declared_configs() {
  return {driver<LocalConfig>(DriverKind::local, "{}"),
          driver<SshConfig>(DriverKind::ssh,
                            R"({"host": "h", "username": "u", "remoteWorkspacePath": "/w"})"),
          driver<PluginConfig>(DriverKind::plugin, R"({"pluginKey": "p", "driverKey": "d"})"),
          {"linux", linux_config_schema(), json(R"({"image": "debian", "poolSize": 1})"),
           without_nulls<LinuxConfig>,
           [](const bj::object& config) { return parse_linux_config(config).has_value(); }},
          {"fake",
           fake_config_schema(),
           {},
           as_written<FakeConfig>,
           [](const bj::object& config) { return provider_decodes("fake", config); }},
          {"another provider",
           config_schema<SandboxFields>(),
           {},
           as_written<SandboxFields>,
           [](const bj::object& config) { return provider_decodes("acme", config); }},
          adapter<ProcessConfig>(AdapterType::process, R"({"command": "make"})"),
          adapter<ClaudeConfig>(AdapterType::claude_local, "{}"),
          adapter<CodexConfig>(AdapterType::codex_local, "{}")};
}

// Texts that a rule may accept or refuse. None holds NUL, where the judge would cut it off; the
// tests of each config do.
bj::array texts() {
  using namespace std::string_view_literals;
  bj::array out;
  for (const std::string_view text :
       {""sv,        " "sv,      "a"sv,       "-a"sv,     "a b"sv,     "a:b"sv,         "/"sv,
        "/a"sv,      "/a/"sv,    "/a/../b"sv, "/a/./b"sv, "/a//b"sv,   "/.a/..b/..."sv, "/a b"sv,
        "/a:b"sv,    "/a\nb"sv,  "\v"sv,      "A.b"sv,    "a.b-c_d"sv, "0"sv,           "\u00e4"sv,
        "/\u00e4"sv, "/a\x7f"sv, "latest"sv}) {
    out.emplace_back(text);
  }
  return out;
}

// In range, at both edges, and beyond them.
bj::array edge_numbers(const bj::object& schema) {
  bj::array out{0, 1, -1, 2.5, 1e18};
  for (const char* end : {"minimum", "maximum"}) {
    if (!schema.contains(end)) continue;
    const bj::value& edge = schema.at(end);
    out.push_back(edge);
    for (const int step : {-1, 1}) {
      if (edge.is_double()) {
        out.emplace_back(edge.get_double() + step * 0.001);
      } else {
        out.emplace_back(edge.to_number<std::int64_t>() + step);
      }
    }
  }
  return out;
}

bj::array values_for(const bj::object& schema);

// Each element alone, two together, and none.
bj::array lists(const bj::object& schema) {
  bj::array out{bj::array{}};
  for (const bj::value& item : values_for(schema.at("items").as_object())) {
    out.push_back(bj::array{item});
    out.push_back(bj::array{item, item});
  }
  return out;
}

bj::array objects(const bj::object& schema) {
  bj::array out{bj::object{}, bj::object{{"no such key", 1}}};
  if (!schema.contains("properties")) return out;
  bj::object whole{{"type", "secret_ref"}, {"secretId", "0190b5d2-7c3e-7abc-8def-0123456789ab"}};
  if (schema.contains("required")) out.push_back(whole);
  for (const auto& [key, property] : schema.at("properties").as_object()) {
    for (const bj::value& value : values_for(property.as_object())) {
      bj::object one = schema.contains("required") ? whole : bj::object{};
      one[key] = value;
      out.push_back(std::move(one));
    }
  }
  return out;
}

// Values of every type, and more of the schema's own.
bj::array values_for(const bj::object& schema) {
  bj::array out{nullptr, true, 1, 1.5, "text", bj::array{}, bj::array{1}, bj::object{}};
  const auto add = [&](const bj::array& more) { out.insert(out.end(), more.begin(), more.end()); };
  if (schema.contains("enum")) add(schema.at("enum").as_array());
  if (!schema.contains("type")) return out;
  const std::string_view type = schema.at("type").as_string();
  if (type == "string") add(texts());
  if (type == "integer" || type == "number") add(edge_numbers(schema));
  if (type == "array") add(lists(schema));
  if (type == "object") add(objects(schema));
  return out;
}

// A format is an annotation, as core/config/config_schema.cpp has it; the judge would check some.
bj::value without_formats(const bj::value& schema) {
  if (const bj::array* list = schema.if_array()) {
    bj::array out;
    for (const bj::value& each : *list) out.push_back(without_formats(each));
    return out;
  }
  if (!schema.is_object()) return schema;
  bj::object out;
  for (const auto& [key, value] : schema.get_object()) {
    if (key != "format") out.emplace(key, without_formats(value));
  }
  return out;
}

// The validator reads its schema for each value, so it gets only the fields that the config
// has.
bj::object part_for(const bj::object& schema, const bj::object& config) {
  bj::object part = schema;
  bj::object properties;
  for (const auto& [key, property] : schema.at("properties").as_object()) {
    if (config.contains(key)) properties.emplace(key, without_formats(property));
  }
  part["properties"] = std::move(properties);
  return part;
}

std::vector<Issue> judged(const Declared& each, const bj::object& config) {
  return schema_detail::problems_of(part_for(each.schema, config), each.spelled(config), "");
}

std::vector<std::string> reasons(const Declared& each, const bj::object& config) {
  std::vector<std::string> out;
  for (const Issue& issue : judged(each, config)) {
    out.push_back(issue.path + " " + issue.message);
  }
  return out;
}

bool accepts(const Declared& each, const bj::object& config) {
  return judged(each, config).empty();
}

bool expect_same(const Declared& each, const bj::object& config) {
  const bool is_accepted = accepts(each, config);
  EXPECT_EQ(is_accepted, each.decodes(config)) << each.name << ": " << bj::serialize(config) << " "
                                               << testing::PrintToString(reasons(each, config));
  return is_accepted;
}

TEST(ConfigProperties, TheSchemaAcceptsExactlyWhatDecodes) {
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (const Declared& each : declared_configs()) {
    ASSERT_TRUE(accepts(each, each.sound)) << each.name;
    expect_same(each, each.sound);
    for (const auto& [key, property] : each.schema.at("properties").as_object()) {
      if (key == "provider") continue;  // it chooses the decoder
      for (const bj::value& value : values_for(property.as_object())) {
        bj::object config = each.sound;
        config[key] = value;
        ++(expect_same(each, config) ? accepted : refused);
      }
    }
  }
  EXPECT_GT(accepted, 500U);
  EXPECT_GT(refused, 500U);
}

TEST(ConfigProperties, AnUnknownKeyIsRefusedByBothOrByNeither) {
  for (const Declared& each : declared_configs()) {
    bj::object config = each.sound;
    config["noSuchKey"] = 1;
    const bool is_adapter = each.name == "process" || each.name.ends_with("_local");
    // Adapters suggest the nearest key, in normalize_adapter_config.
    if (!is_adapter) expect_same(each, config);
  }
}

TEST(ConfigProperties, ARequiredFieldIsMissedByBoth) {
  for (const Declared& each : declared_configs()) {
    for (const auto& [key, value] : each.sound) {
      bj::object config = each.sound;
      config.erase(key);
      expect_same(each, config);
    }
  }
}

TEST(ConfigProperties, EveryFieldOfAFormHasATitle) {
  for (const Declared& each : declared_configs()) {
    if (each.name == "another provider" || each.name == "fake") continue;
    for (const auto& [key, property] : each.schema.at("properties").as_object()) {
      EXPECT_TRUE(property.as_object().contains("title")) << each.name << ": " << key;
    }
  }
}

}  // namespace
}  // namespace berth::core
