#include "core/config/config_schema.hpp"

#include "core/config/pattern.hpp"

#include <set>

namespace berth::core {
namespace {

constexpr SchemaLimits limits;

std::unexpected<Error> schema_refused(const std::string& at, const std::string& why) {
  return std::unexpected(Error{Errc::plugin_manifest_invalid,
                               (at.empty() ? "/" : at) + ": " + why,
                               "ask the author of the plugin to mend its config schema",
                               {{at, why}}});
}

std::string below(const std::string& at, std::string_view key) {
  return at + (ConfigPath{} / key).pointer();
}

bool has_text(const bj::object& in, std::string_view key, std::string_view text) {
  const bj::value* const found = in.if_contains(key);
  return found != nullptr && found->is_string() && std::string_view{found->get_string()} == text;
}

bool is_secret(const bj::object& schema) {
  return has_text(schema, "format", "secret-ref");
}

// How to treat a value inside a schema: as a schema, as a map of fields, or as plain data whose
// keys have no meaning.
enum class As { schema, fields, plain };

As what_is(As parent, std::string_view key) {
  if (parent == As::plain) return As::plain;
  if (parent == As::fields) return As::schema;
  for (const std::string_view name : {"properties", "patternProperties", "dependentSchemas",
                                      "dependencies", "$defs", "definitions"}) {
    if (key == name) return As::fields;
  }
  for (const std::string_view name : {"enum", "const", "default", "examples"}) {
    if (key == name) return As::plain;
  }
  return As::schema;
}

// Copies a schema, with each reference replaced by its target.
class Reading {
 public:
  Reading(const bj::object& root, std::string at) : root_(root), at_(std::move(at)) {}

  Result<bj::object> read() {
    BERTH_TRY(bj::value whole, copy(root_, As::schema, at_, 0));
    if (whole.is_object()) return std::move(whole.get_object());
    return schema_refused(at_, "is not an object");
  }

 private:
  Result<bj::value> copy(const bj::value& in, As as, const std::string& at, std::size_t depth) {
    if (depth > limits.depth_max) {
      return schema_refused(at,
                            "is nested more than " + std::to_string(limits.depth_max) + " deep");
    }
    if (++nodes_ > limits.nodes_max) {
      return schema_refused(at_, "holds more than " + std::to_string(limits.nodes_max) + " values");
    }
    if (const bj::array* const list = in.if_array()) {
      bj::array out;
      for (std::size_t i = 0; i < list->size(); ++i) {
        const std::string place = below(at, std::to_string(i));
        BERTH_TRY(bj::value element, copy((*list)[i], as, place, depth + 1));
        out.push_back(std::move(element));
      }
      return bj::value(std::move(out));
    }
    const bj::object* const object = in.if_object();
    if (object == nullptr) return in;
    const bj::value* const ref = as == As::schema ? object->if_contains("$ref") : nullptr;
    return ref != nullptr ? follow(*ref, at, depth) : copy_object(*object, as, at, depth);
  }

  Result<bj::value> copy_object(const bj::object& object, As as, const std::string& at,
                                std::size_t depth) {
    bj::object out;
    for (const auto& [key, value] : object) {
      const std::string_view name = key;
      const std::string place = below(at, name);
      if (as == As::schema) {
        if (name == "$defs" || name == "definitions") continue;  // copied where they are used
        BERTH_DO(check_patterns(name, value, place));
      }
      BERTH_TRY(bj::value copied, copy(value, what_is(as, name), place, depth + 1));
      out.insert_or_assign(key, std::move(copied));
    }
    return bj::value(std::move(out));
  }

  static Result<> check_patterns(std::string_view keyword, const bj::value& value,
                                 const std::string& at) {
    if (keyword == "pattern" && value.is_string()) return check_pattern(value.get_string(), at);
    if (keyword != "patternProperties" || !value.is_object()) return {};
    for (const auto& [pattern, described] : value.get_object()) {
      BERTH_DO(check_pattern(pattern, below(at, pattern)));
    }
    return {};
  }

  static Result<> check_pattern(std::string_view pattern, const std::string& at) {
    if (pattern.size() > limits.pattern_bytes_max)
      return schema_refused(at, "is too long a pattern");
    const Result<Pattern> compiled = Pattern::compile(pattern);
    if (compiled) return {};
    return schema_refused(at, "is not a pattern of RE2: " + compiled.error().message);
  }

  Result<bj::value> follow(const bj::value& ref, const std::string& at, std::size_t depth) {
    const std::string place = below(at, "$ref");
    if (!ref.is_string()) return schema_refused(place, "is not a string");
    const std::string target{ref.get_string()};
    if (!target.starts_with("#/")) {
      return schema_refused(place,
                            "refers to '" + target +
                                "'; a schema may refer only to parts of itself, as \"#/$defs/X\"");
    }
    if (!under_way_.insert(target).second) return schema_refused(place, "leads back to itself");
    boost::system::error_code error;
    const bj::value* const found = root_.find_pointer(target.substr(1), error);
    if (found == nullptr) return schema_refused(place, "'" + target + "' is not there");
    BERTH_TRY(bj::value copied, copy(*found, As::schema, at, depth + 1));
    under_way_.erase(target);
    return copied;
  }

  bj::value root_;
  std::string at_;
  std::size_t nodes_ = 0;
  std::set<std::string> under_way_;
};

const bj::object* object_at(const bj::object& in, std::string_view key) {
  const bj::value* const found = in.if_contains(key);
  return found != nullptr ? found->if_object() : nullptr;
}

const bj::array* array_at(const bj::object& in, std::string_view key) {
  const bj::value* const found = in.if_contains(key);
  return found != nullptr ? found->if_array() : nullptr;
}

// Calls visit(subschema) for every schema that applies to the same value.
template <class Visit>
void for_each_branch(const bj::object& schema, std::initializer_list<std::string_view> keys,
                     const Visit& visit) {
  for (const std::string_view key : keys) {
    if (const bj::array* const branches = array_at(schema, key)) {
      for (const bj::value& branch : *branches) {
        if (branch.is_object()) visit(branch.get_object());
      }
    } else if (const bj::object* const branch = object_at(schema, key)) {
      visit(*branch);
    }
  }
}

// The schema of one array element; null when any element is valid.
const bj::object* schema_of_element(const bj::object& schema, std::size_t index) {
  const bj::array* tuple = array_at(schema, "prefixItems");
  if (tuple == nullptr) tuple = array_at(schema, "items");
  if (tuple != nullptr && index < tuple->size()) return (*tuple)[index].if_object();
  const std::string_view rest = array_at(schema, "items") != nullptr ? "additionalItems" : "items";
  return object_at(schema, rest);
}

void fill_in(const bj::object& schema, bj::value& value) {
  for_each_branch(schema, {"allOf"}, [&](const bj::object& part) { fill_in(part, value); });
  if (bj::object* const object = value.if_object()) {
    const bj::object* const properties = object_at(schema, "properties");
    if (properties == nullptr) return;
    for (const auto& [name, described] : *properties) {
      const bj::object* const property = described.if_object();
      if (property == nullptr) continue;
      if (!object->contains(name)) {
        const bj::value* const preset = property->if_contains("default");
        if (preset == nullptr || is_secret(*property)) continue;
        object->insert_or_assign(name, *preset);
      }
      fill_in(*property, object->at(name));
    }
  } else if (bj::array* const list = value.if_array()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (const bj::object* const element = schema_of_element(schema, i)) {
        fill_in(*element, (*list)[i]);
      }
    }
  }
}

void collect(const bj::object& schema, const bj::value& value, const ConfigPath& at,
             std::set<ConfigPath>& out) {
  if (is_secret(schema)) out.insert(at);
  for_each_branch(schema, {"allOf", "anyOf", "oneOf", "then", "else"},
                  [&](const bj::object& branch) { collect(branch, value, at, out); });
  if (const bj::object* const object = value.if_object()) {
    const bj::object* const properties = object_at(schema, "properties");
    const bj::object* const others = object_at(schema, "additionalProperties");
    const bj::object* const patterns = object_at(schema, "patternProperties");
    for (const auto& [name, field] : *object) {
      const bj::object* const known =
          properties != nullptr ? object_at(*properties, name) : nullptr;
      if (known != nullptr) {
        collect(*known, field, at / name, out);
        continue;
      }
      if (others != nullptr) collect(*others, field, at / name, out);
      // Every pattern counts as a match: treating too many fields as secrets is safe, too few is
      // not.
      if (patterns == nullptr) continue;
      for (const auto& [pattern, described] : *patterns) {
        if (described.is_object()) collect(described.get_object(), field, at / name, out);
      }
    }
  } else if (const bj::array* const list = value.if_array()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (const bj::object* const element = schema_of_element(schema, i)) {
        collect(*element, (*list)[i], at / std::to_string(i), out);
      }
    }
  }
}

// The schema for the validator. A secret field requires only a string, because it may hold an id.
// Formats are annotations for people, and a tuple uses the older spelling.
bj::value eased(const bj::value& in, As as) {
  if (const bj::array* const list = in.if_array()) {
    bj::array out;
    for (const bj::value& element : *list) out.push_back(eased(element, as));
    return out;
  }
  const bj::object* const object = in.if_object();
  if (object == nullptr || as == As::plain) return in;
  if (as == As::schema && is_secret(*object)) return bj::object{{"type", "string"}};
  bj::object out;
  for (const auto& [key, value] : *object) {
    const bool remark = as == As::schema && (key == "format" || std::string_view{key} == "default");
    if (!remark) out.insert_or_assign(key, eased(value, what_is(as, key)));
  }
  if (as == As::schema && out.contains("prefixItems")) {
    if (const bj::value* const rest = out.if_contains("items")) out["additionalItems"] = *rest;
    out["items"] = out.at("prefixItems");
    out.erase("prefixItems");
  }
  return out;
}

struct Measure {
  std::size_t nodes = 0;
  std::size_t depth = 0;
  std::size_t longest = 0;  // string
};

void measure(const bj::value& value, std::size_t depth, Measure& out) {
  ++out.nodes;
  out.depth = std::max(out.depth, depth);
  if (out.nodes > limits.nodes_max || depth > limits.depth_max) return;
  if (const bj::string* const text = value.if_string()) {
    out.longest = std::max(out.longest, text->size());
  } else if (const bj::array* const list = value.if_array()) {
    for (const bj::value& element : *list) measure(element, depth + 1, out);
  } else if (const bj::object* const object = value.if_object()) {
    for (const auto& [key, field] : *object) {
      out.longest = std::max(out.longest, key.size());
      measure(field, depth + 1, out);
    }
  }
}

bool mentions_pattern(const bj::value& schema) {
  if (const bj::array* const list = schema.if_array()) {
    return std::ranges::any_of(*list, mentions_pattern);
  }
  const bj::object* const object = schema.if_object();
  if (object == nullptr) return false;
  return std::ranges::any_of(*object, [](const auto& entry) {
    return entry.key() == "pattern" || entry.key() == "patternProperties" ||
           mentions_pattern(entry.value());
  });
}

std::unexpected<Error> wrong_config(std::vector<Issue> issues) {
  const Issue& first = issues.front();
  return std::unexpected(Error{Errc::unprocessable, first.path + ": " + first.message,
                               "the capabilities of the company carry the schema of the provider",
                               std::move(issues)});
}

}  // namespace

Result<ConfigSchema> ConfigSchema::read(const bj::object& schema, std::string_view at) {
  BERTH_TRY(bj::object whole, Reading(schema, std::string{at}).read());
  const bj::value checked = eased(whole, As::schema);
  if (checked.is_object()) BERTH_DO(schema_detail::parse(checked.get_object(), at));
  return ConfigSchema{std::move(whole)};
}

bj::object ConfigSchema::with_defaults(bj::object config) const {
  bj::value value(std::move(config));
  fill_in(whole_, value);
  return std::move(value.as_object());
}

Result<> ConfigSchema::check(const bj::object& config, std::string_view at) const {
  Measure size;
  measure(config, 0, size);
  const std::string place{at};
  if (size.depth > limits.depth_max) return wrong_config({{place, "is nested too deep"}});
  if (size.nodes > limits.nodes_max) return wrong_config({{place, "holds too many values"}});
  const bj::value schema = eased(whole_, As::schema);
  if (size.longest > limits.pattern_subject_bytes_max && mentions_pattern(schema)) {
    return wrong_config({{place, "holds a text that is too long to be checked by a pattern"}});
  }
  std::vector<Issue> issues = schema_detail::problems_of(schema.get_object(), config, at);
  if (issues.empty()) return {};
  return wrong_config(std::move(issues));
}

std::vector<ConfigPath> ConfigSchema::secrets_in(const bj::object& config) const {
  std::set<ConfigPath> found;
  collect(whole_, config, ConfigPath{}, found);
  return {found.begin(), found.end()};
}

bool ConfigSchema::declares(std::string_view field) const {
  const bj::object* const properties = object_at(whole_, "properties");
  return properties != nullptr && properties->contains(field);
}

}  // namespace berth::core
