#include "core/config/config_schema.hpp"

#include <boost/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

bj::object object(std::string_view text) {
  return bj::parse(bj::string_view{text.data(), text.size()}, {}, {.max_depth = 200}).as_object();
}

ConfigSchema read_schema(std::string_view text) {
  Result<ConfigSchema> schema = ConfigSchema::read(object(text), "/configSchema");
  EXPECT_TRUE(schema) << (schema ? "" : schema.error().message);
  return *std::move(schema);
}

std::vector<std::string> wrong_fields(const ConfigSchema& schema, std::string_view config) {
  const Result<> checked = schema.check(object(config), "/config");
  std::vector<std::string> out;
  if (checked) return out;
  EXPECT_EQ(checked.error().code, Errc::unprocessable);
  for (const Issue& issue : checked.error().issues) out.push_back(issue.path);
  return out;
}

std::string refusal(std::string_view schema) {
  const Result<ConfigSchema> read_schema = ConfigSchema::read(object(schema), "/configSchema");
  if (read_schema) return "accepted";
  EXPECT_EQ(read_schema.error().code, Errc::plugin_manifest_invalid);
  return read_schema.error().issues.empty() ? "" : read_schema.error().issues.front().path;
}

std::vector<std::string> secrets(const ConfigSchema& schema, std::string_view config) {
  std::vector<std::string> out;
  for (const ConfigPath& path : schema.secrets_in(object(config))) out.push_back(path.text());
  return out;
}

TEST(ConfigSchema, namesEachWrongFieldByItsPointer) {
  const ConfigSchema schema = read_schema(R"({
    "type": "object", "required": ["template", "region"], "additionalProperties": false,
    "properties": {
      "template": {"type": "string", "minLength": 1},
      "region": {"type": "string", "enum": ["eu", "us"]},
      "limits": {"type": "object", "properties": {"cpus": {"type": "integer", "minimum": 1}}},
      "ports": {"type": "array", "items": {"type": "integer"}}}})");
  EXPECT_THAT(wrong_fields(schema, R"({"template": "t", "region": "eu"})"), IsEmpty());
  EXPECT_THAT(wrong_fields(schema, R"({"region": "eu"})"), ElementsAre("/config/template"));
  EXPECT_THAT(wrong_fields(schema, R"({"template": "t", "region": "mars"})"),
              ElementsAre("/config/region"));
  EXPECT_THAT(wrong_fields(schema, R"({"template": "t", "region": "eu", "limits": {"cpus": 0}})"),
              ElementsAre("/config/limits/cpus"));
  EXPECT_THAT(wrong_fields(schema, R"({"template": "t", "region": "eu", "ports": [80, "x"]})"),
              ElementsAre("/config/ports/1"));
  EXPECT_THAT(wrong_fields(schema, R"({"template": "t", "region": "eu", "tmplate": 1})"),
              ElementsAre("/config/tmplate"));
}

TEST(ConfigSchema, fillsInDefaultsAtAnyDepthOfWhatIsThere) {
  const ConfigSchema schema = read_schema(R"({
    "type": "object",
    "properties": {
      "image": {"type": "string", "default": "debian"},
      "limits": {"type": "object", "properties": {"cpus": {"type": "integer", "default": 2}}},
      "mounts": {"type": "array", "items": {"type": "object",
                 "properties": {"mode": {"type": "string", "default": "ro"}}}}},
    "allOf": [{"properties": {"zone": {"default": "a"}}}]})");
  EXPECT_EQ(schema.with_defaults(object(R"({"limits": {}, "mounts": [{}, {"mode": "rw"}]})")),
            object(R"({"image": "debian", "limits": {"cpus": 2}, "zone": "a",
                       "mounts": [{"mode": "ro"}, {"mode": "rw"}]})"));
  EXPECT_EQ(schema.with_defaults(object(R"({"image": "mine"})")),
            object(R"({"image": "mine", "zone": "a"})"));
}

TEST(ConfigSchema, findsSecretsThroughBranchesAndArrays) {
  const ConfigSchema schema = read_schema(R"({
    "type": "object",
    "$defs": {"auth": {"type": "object",
                       "properties": {"token": {"type": "string", "format": "secret-ref"}}}},
    "properties": {
      "apiKey": {"type": "string", "format": "secret-ref"},
      "auth": {"$ref": "#/$defs/auth"},
      "registries": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/auth"}]}},
      "pair": {"type": "array", "items": [{"type": "string"},
                                          {"type": "string", "format": "secret-ref"}]}},
    "additionalProperties": {"type": "string", "format": "secret-ref"},
    "anyOf": [{"properties": {"left": {"oneOf": [{"type": "number"},
                                                 {"type": "string", "format": "secret-ref"}]}}},
              {"properties": {"right": {"type": "string"}}}]})");
  EXPECT_THAT(
      secrets(schema, R"({"apiKey": "a", "auth": {"token": "b", "user": "c"},
                                  "registries": [{"token": "d"}, {"user": "e"}, {"token": "f"}],
                                  "pair": ["g", "h"]})"),
      ElementsAre("apiKey", "auth.token", "pair.1", "registries.0.token", "registries.2.token"));
  EXPECT_THAT(secrets(schema, R"({"left": "x"})"), Contains("left"));
  EXPECT_THAT(secrets(schema, R"({"extra": "x"})"), ElementsAre("extra"));
}

TEST(ConfigSchema, asksOnlyForTextWhereASecretStands) {
  const ConfigSchema schema = read_schema(R"({"type": "object", "required": ["key"], "properties":
    {"key": {"type": "string", "format": "secret-ref", "pattern": "^sk-[a-z]+$"}}})");
  EXPECT_THAT(wrong_fields(schema, R"({"key": "0199b2c0-0000-7000-8000-000000000000"})"),
              IsEmpty());
  EXPECT_THAT(wrong_fields(schema, R"({"key": 3})"), ElementsAre("/config/key"));
  EXPECT_THAT(wrong_fields(schema, R"({})"), ElementsAre("/config/key"));
}

TEST(ConfigSchema, staysWithinItsOwnDocument) {
  EXPECT_EQ(refusal(R"({"properties": {"a": {"$ref": "https://example.com/s.json"}}})"),
            "/configSchema/properties/a/$ref");
  EXPECT_EQ(refusal(R"({"properties": {"a": {"$ref": "other.json#/b"}}})"),
            "/configSchema/properties/a/$ref");
  EXPECT_EQ(refusal(R"({"properties": {"a": {"$ref": "#/$defs/none"}}})"),
            "/configSchema/properties/a/$ref");
  EXPECT_EQ(refusal(R"({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}}},
                        "properties": {"x": {"$ref": "#/$defs/a"}}})"),
            "/configSchema/properties/x/properties/b/$ref");
}

TEST(ConfigSchema, costsNoMoreThanItsLimits) {
  std::string deep = R"({"type": "object"})";
  for (int i = 0; i < 40; ++i) deep = R"({"properties": {"a": )" + deep + "}}";
  EXPECT_NE(refusal(deep), "accepted");
  // Each definition contains the previous one twice: small to write, exponential to expand.
  std::string bomb = R"({"$defs": {"d0": {"type": "string"})";
  for (int i = 1; i < 30; ++i) {
    const std::string inner = R"({"$ref": "#/$defs/d)" + std::to_string(i - 1) + R"("})";
    bomb += R"(, "d)" + std::to_string(i) + R"(": {"anyOf": [)" + inner + ", " + inner + "]}";
  }
  bomb += R"(}, "properties": {"x": {"$ref": "#/$defs/d29"}}})";
  EXPECT_NE(refusal(bomb), "accepted");

  const ConfigSchema schema = read_schema(R"({"properties": {"a": {"pattern": "^[a-z]*$"}}})");
  const std::string longest = R"({"a": ")" + std::string(100'000, 'a') + R"("})";
  EXPECT_THAT(wrong_fields(schema, longest), ElementsAre("/config"));
  std::string nested = "1";
  for (int i = 0; i < 31; ++i) nested = R"({"a": )" + nested + "}";
  EXPECT_THAT(wrong_fields(read_schema("{}"), nested), IsEmpty());
  EXPECT_THAT(wrong_fields(read_schema("{}"), R"({"a": {"a": )" + nested + "}}"),
              ElementsAre("/config"));
}

// A subject of 4096 characters: a backtracking engine would never finish.
TEST(ConfigSchema, AnswersPatternsThatBacktrackWithoutEnd) {
  const std::string hard = std::string(4095, 'a') + "b";
  for (const std::string pattern : {"^(a|a)*$", "^(a+)+$", "^(a?){40}a{40}$"}) {
    const ConfigSchema schema =
        read_schema(R"({"properties": {"text": {"type": "string", "pattern": ")" + pattern + R"("},
            "names": {"type": "object", "propertyNames": {"pattern": ")" +
                    pattern + R"("}},
            "fields": {"type": "object", "additionalProperties": false,
                       "patternProperties": {")" +
                    pattern + R"(": {"type": "integer"}}}}})");
    const std::string easy(60, 'a');
    EXPECT_THAT(wrong_fields(schema, R"({"text": ")" + easy + R"(", "names": {")" + easy +
                                         R"(": 1}, "fields": {")" + easy + R"(": 1}})"),
                IsEmpty())
        << pattern;
    EXPECT_THAT(wrong_fields(schema, R"({"text": ")" + hard + R"("})"),
                ElementsAre("/config/text"));
    EXPECT_THAT(wrong_fields(schema, R"({"names": {")" + hard + R"(": 1}})"),
                ElementsAre("/config"));  // the validator does not report which name
    EXPECT_THAT(wrong_fields(schema, R"({"fields": {")" + hard + R"(": 1}})"),
                Contains(testing::StartsWith("/config/fields/aaaa")));  // a long name is truncated
  }
}

// Each match is bounded, and so is their sum: many patterns over many texts would stall the server.
TEST(ConfigSchema, RefusesAConfigWhosePatternsCostTooMuchTogether) {
  std::string patterns;
  for (int i = 0; i < 20; ++i) {
    patterns +=
        (i == 0 ? "" : ",") + (R"({"pattern": "[ab]*a[ab]{400}$|q)" + std::to_string(i) + R"("})");
  }
  const ConfigSchema schema = read_schema(R"({"properties": {"texts": {"type": "array", "items":
      {"type": "string", "allOf": [)" + patterns +
                                          "]}}}}");
  const auto with_texts = [](int count) {
    std::string texts;
    for (int i = 0; i < count; ++i) {
      texts += (i == 0 ? "\"" : ",\"") + std::string(401, 'a') + "\"";
    }
    return R"({"texts": [)" + texts + "]}";
  };
  EXPECT_THAT(wrong_fields(schema, with_texts(1)), IsEmpty());
  EXPECT_THAT(wrong_fields(schema, with_texts(200)), ElementsAre("/config"));
}

TEST(ConfigSchema, RefusesAPatternThatTakesBacktrackingByItsPointer) {
  const auto refused = [](std::string_view schema) {
    const Result<ConfigSchema> read_schema = ConfigSchema::read(object(schema), "/configSchema");
    return read_schema ? "accepted" : read_schema.error().message;
  };
  EXPECT_EQ(
      refused(R"({"properties": {"a": {"pattern": "^(?=.*[0-9]).+$"}}})"),
      "/configSchema/properties/a/pattern: is not a pattern of RE2: invalid perl operator: (?=");
  EXPECT_EQ(refused(R"({"properties": {"a": {"pattern": "^(a)\\1$"}}})"),
            "/configSchema/properties/a/pattern: is not a pattern of RE2: "
            "invalid escape sequence: \\1");
  EXPECT_EQ(refused(R"j({"patternProperties": {"^(?!x)": {}}})j"),
            "/configSchema/patternProperties/^(?!x): is not a pattern of RE2: "
            "invalid perl operator: (?!");
  EXPECT_EQ(refusal(R"({"propertyNames": {"pattern": "(?<=x)y"}})"),
            "/configSchema/propertyNames/pattern");
  EXPECT_EQ(refusal(R"({"properties": {"a": {"pattern": "^[a-z]+(-[a-z0-9])?$"}}})"), "accepted");
}

TEST(ConfigSchema, refusesWhatIsNoSchema) {
  EXPECT_EQ(refusal(R"({"type": "object", "required": "name"})"), "/configSchema");
  EXPECT_EQ(refusal(R"({"type": "object", "properties": 3})"), "/configSchema");
}

TEST(ConfigSchema, takesFieldsThatAreCalledLikeKeywords) {
  const ConfigSchema schema = read_schema(R"({"type": "object", "properties": {
    "$ref": {"type": "string"}, "format": {"type": "integer"}, "default": {"type": "boolean"},
    "kind": {"type": "string", "x-paperclip-advanced": true, "x-paperclip-group": "More"}}})");
  EXPECT_THAT(wrong_fields(schema, R"({"$ref": 1, "format": "x", "default": 2})"),
              testing::UnorderedElementsAre("/config/$ref", "/config/format", "/config/default"));
}

TEST(ConfigPath, spellsEveryPlaceInOneWay) {
  const ConfigPath path{{"a.b", "0", "c\\d", "e/f~"}};
  EXPECT_EQ(path.text(), "a\\.b.0.c\\\\d.e/f~");
  EXPECT_EQ(path.pointer(), "/a.b/0/c\\d/e~1f~0");
  EXPECT_EQ(ConfigPath::parse(path.text()), path);
  bj::object config = object(R"({"a.b": [{"x": 1}], "only": {"inner": 1}})");
  EXPECT_TRUE(set_at(config, ConfigPath{{"a.b", "0", "x"}}, 2));
  EXPECT_FALSE(set_at(config, ConfigPath{{"a.b", "1", "x"}}, 2));
  EXPECT_FALSE(set_at(config, ConfigPath{{"none", "x"}}, 2));
  EXPECT_EQ(*find_at(config, ConfigPath{{"a.b", "0", "x"}}), 2);
  erase_at(config, ConfigPath{{"only", "inner"}});
  erase_at(config, ConfigPath{{"a.b", "0"}});
  erase_at(config, ConfigPath{{"none", "x"}});
  EXPECT_EQ(config, object(R"({"a.b": [null], "only": {}})"));
}

}  // namespace
}  // namespace berth::core
