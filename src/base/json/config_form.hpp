#pragma once

#include "base/json/json.hpp"

#include <boost/mp11/algorithm.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A config, declared once: a described struct and notes on its members. From them come the JSON
// Schema from which a form is drawn, the defaults, and the reader that reports invalid fields one
// by one. A Secret is a `secret-ref` field: its value is stored separately, and inserted just
// before each call.
namespace berth {

// A rule for a text besides its type. The two members say the same; config_property_test.cpp
// compares them.
struct TextRule {
  std::string_view pattern;  // for the schema, in the syntax that RE2 and browsers share
  std::string_view says;     // for people: what such a text is
  // What is wrong with a text; empty if nothing is.
  std::string_view (*wrong)(std::string_view text);
};

// The help text of one field, and constraints on its value besides its type.
struct Note {
  std::string_view title = {};
  std::string_view says = {};
  std::string_view unit = {};  // "ms": shown after the title
  std::optional<double> low = {};
  std::optional<double> high = {};
  bool required = false;  // and not empty
  bool advanced = false;  // shown only on request
  std::string_view group = {};
  const TextRule* rule = nullptr;        // of a text, and of each text in a list
  std::optional<std::size_t> most = {};  // bytes of a text, or elements of a list
  std::string_view format = {};          // "textarea": a text of several lines
  std::string_view usual = {};           // JSON: what absence means, if the member has no default
  std::string_view missing = {};         // the message for a required field that is absent
  std::string_view wrong = {};           // one message for everything else, at the field itself
  std::string_view value_key = {};       // the field that takes the value of this reference
  bool hidden = false;                   // not part of the form
};

// Notes on the members of a config: {{&Config::image, {.title = "Image"}}, ...}
template <class Config>
struct FieldNote {
  std::string_view key;
  Note note;

  template <class Field>
  FieldNote(Field Config::* member, Note what) : note(what) {
    boost::mp11::mp_for_each<MembersOf<Config>>([&]<class M>(M /*member*/) {
      if constexpr (std::same_as<std::remove_cv_t<decltype(M::pointer)>, Field Config::*>) {
        if (M::pointer == member) key = wire_name<M>();
      }
    });
  }
};

template <class Config>
using Notes = std::vector<FieldNote<Config>>;

// A type that reads and describes itself, such as a reference to a secret. Specialize with
//   static bj::object schema();
//   static std::optional<T> read(const bj::value& in, const JsonAt& at, JsonIssues& issues);
//   static bj::value write(const T& value);
template <class T>
struct FieldForm;

// How a range is named in a message: only the end that was passed, or both.
enum class RangeWords { nearest, both };

struct ConfigReading {
  UnknownKeys unknown = UnknownKeys::ignore;
  std::string prefix = {};  // the config's own pointer in the document
  Errc code = Errc::validation_failed;
  RangeWords range = RangeWords::nearest;
};

namespace form_detail {

template <class T>
concept HasForm = requires { &FieldForm<T>::read; };

template <class Config>
const Note& note_on(std::string_view key) {
  static const Note none;
  if constexpr (requires { Config::notes(); }) {
    static const Notes<Config> notes = Config::notes();
    for (const FieldNote<Config>& field : notes) {
      if (field.key == key) return field.note;
    }
  }
  return none;
}

template <class T>
inline constexpr bool is_secret = std::same_as<T, Secret>;
template <class T>
inline constexpr bool is_secret<std::optional<T>> = is_secret<T>;

// The struct inside of a field, also of an optional one; void for any other field.
template <class T>
struct StructIn {
  using Type = void;
};
template <class T>
  requires(DescribedStruct<T> && !HasForm<T>)
struct StructIn<T> {
  using Type = T;
};
template <class T>
struct StructIn<std::optional<T>> : StructIn<T> {};
template <class T>
using StructOf = typename StructIn<T>::Type;
template <class T>
inline constexpr bool has_struct = !std::is_void_v<StructOf<T>>;

void annotate(bj::object& schema, const Note& note);
// Adds an issue for what the note forbids, and reports whether there was one.
bool violates(const bj::value* value, const Note& note, RangeWords words, const JsonAt& at,
              JsonIssues& issues);
void add_usual(bj::object& schema, const Note& note);
// 300000, not 3E5: hosts and users expect a whole number.
bj::value number(double value);
// What forms send: texts with blanks around them, and numbers as texts.
void trim(bj::value& value);
void read_number(bj::value& value);
bool is_blank(const bj::value& value);

template <class T>
bj::object schema_of(UnknownKeys unknown);

template <class T>
bj::value encode_field(const T& value) {
  if constexpr (HasForm<T>) {
    return FieldForm<T>::write(value);
  } else if constexpr (json_detail::is_a<T, std::optional>) {
    return value ? encode_field(*value) : bj::value(nullptr);
  } else if constexpr (std::floating_point<T>) {
    return number(value);
  } else {
    return encode(value);
  }
}

// A member's default, as a schema shows it. Nothing for a secret or an empty optional.
template <class T>
std::optional<bj::value> default_of(const T& value) {
  using namespace json_detail;
  if constexpr (is_secret<T> || HasForm<T>) {
    return std::nullopt;
  } else if constexpr (is_a<T, std::optional>) {
    return value ? default_of(*value) : std::nullopt;
  } else if constexpr (DescribedStruct<T>) {
    bj::object out;
    boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
      if (auto item = default_of(value.*M::pointer)) out.emplace(wire_name<M>(), *std::move(item));
    });
    return bj::value(std::move(out));
  } else if constexpr (is_a<T, std::vector>) {
    bj::array out;
    for (const auto& item : value) out.push_back(default_of(item).value_or(nullptr));
    return bj::value(std::move(out));
  } else {
    return encode_field(value);
  }
}

template <class T>
bj::object struct_schema(UnknownKeys unknown) {
  bj::object properties;
  bj::array required;
  const T defaults{};
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    const Note& note = note_on<T>(wire_name<M>());
    bj::object property = schema_of<Field>(unknown);
    annotate(property, note);
    if (note.required) required.emplace_back(wire_name<M>());
    if constexpr (!DescribedStruct<Field>) {
      const auto fallback = note.required ? std::nullopt : default_of(defaults.*M::pointer);
      if (fallback) property["default"] = *fallback;
    }
    add_usual(property, note);
    properties.emplace(wire_name<M>(), std::move(property));
  });
  bj::object out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  if (unknown == UnknownKeys::refuse) out["additionalProperties"] = false;
  return out;
}

template <class T>
bj::object schema_of(UnknownKeys unknown) {
  using namespace json_detail;
  if constexpr (HasForm<T>) {
    return FieldForm<T>::schema();
  } else if constexpr (is_secret<T>) {
    return {{"type", "string"}, {"format", "secret-ref"}};
  } else if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::integral<T>) {
    return {{"type", "integer"}};
  } else if constexpr (std::floating_point<T>) {
    return {{"type", "number"}};
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::same_as<T, bj::object>) {
    return {{"type", "object"}};
  } else if constexpr (DescribedEnum<T>) {
    bj::array names;
    for (const T value : all<T>()) names.emplace_back(name_of(value));
    return {{"type", "string"}, {"enum", std::move(names)}};
  } else if constexpr (is_a<T, std::optional>) {
    return schema_of<typename T::value_type>(unknown);
  } else if constexpr (is_a<T, std::vector>) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>(unknown)}};
  } else if constexpr (is_a<T, std::map>) {
    return {{"type", "object"},
            {"additionalProperties", schema_of<typename T::mapped_type>(unknown)}};
  } else {
    static_assert(DescribedStruct<T>, "describe the struct with BOOST_DESCRIBE_STRUCT");
    return struct_schema<T>(unknown);
  }
}

template <class T>
std::optional<T> read_value(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if constexpr (HasForm<T>) {
    return FieldForm<T>::read(in, at, issues);
  } else {
    return decode_at<T>(in, at, issues);
  }
}

template <class T>
void refuse_unknown(const bj::object& given, const JsonAt& at, JsonIssues& issues) {
  for (const auto& [key, value] : given) {
    const std::string_view name{key.data(), key.size()};
    bool is_known = false;
    boost::mp11::mp_for_each<MembersOf<T>>(
        [&]<class M>(M /*member*/) { is_known = is_known || name == wire_name<M>(); });
    if (!is_known) issues.add(JsonAt{at, name}, "is not a known field");
  }
}

// The constraints of all fields come first, and then their types: an error lists them in this
// order.
template <class T>
void read_struct(const bj::object& given, T& out, RangeWords words, const JsonAt& at,
                 JsonIssues& issues) {
  using namespace json_detail;
  if (issues.refuses_unknown()) refuse_unknown<T>(given, at, issues);
  std::vector<std::string_view> wrong;
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    const std::string_view key = wire_name<M>();
    if (violates(given.if_contains(key), note_on<T>(key), words, JsonAt{at, key}, issues)) {
      wrong.push_back(key);
    }
  });
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = FieldOf<T, M>;
    const std::string_view key = wire_name<M>();
    const bj::value* found = given.if_contains(key);
    const bool is_wrong = std::ranges::find(wrong, key) != wrong.end();
    if (found == nullptr || is_wrong) return;
    const JsonAt here{at, key};
    const Note& note = note_on<T>(key);
    JsonIssues apart{issues.refuses_unknown() ? UnknownKeys::refuse : UnknownKeys::ignore};
    JsonIssues& own = note.wrong.empty() ? issues : apart;
    if constexpr (has_struct<Field>) {
      if (const bj::object* inner = decode_object(*found, here, own)) {
        StructOf<Field> part{};
        read_struct(*inner, part, words, here, own);
        out.*M::pointer = std::move(part);
      }
    } else if constexpr (is_a<Field, std::optional>) {
      if (found->is_null()) {
        out.*M::pointer = Field{};
      } else if (auto value = read_value<typename Field::value_type>(*found, here, own)) {
        out.*M::pointer = *std::move(value);
      }
    } else {
      if (auto value = read_value<Field>(*found, here, own)) out.*M::pointer = *std::move(value);
    }
    if (!apart.list().empty()) issues.add(here, std::string{note.wrong});
  });
}

template <class T>
void respell(bj::object& given, bool trims) {
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    const std::string_view key = wire_name<M>();
    bj::value* found = given.if_contains(key);
    if (found == nullptr) return;
    if (found->is_null()) {
      given.erase(key);
      return;
    }
    if constexpr (has_struct<Field>) {
      if (found->is_object()) respell<StructOf<Field>>(found->get_object(), trims);
    } else if constexpr (std::same_as<Field, std::optional<std::int64_t>> ||
                         std::same_as<Field, std::int64_t>) {
      if (trims) read_number(*found);
    } else {
      if (!trims) return;
      trim(*found);
      if (json_detail::is_a<Field, std::optional> && is_blank(*found)) given.erase(key);
    }
  });
}

// The config for storage: every member, with secrets as they were given.
template <class T>
bj::object normalized(const T& value, const bj::object& given) {
  bj::object out;
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    const std::string_view key = wire_name<M>();
    const bj::value* found = given.if_contains(key);
    if constexpr (is_secret<Field>) {
      if (found != nullptr) out.emplace(key, *found);
    } else if constexpr (DescribedStruct<Field>) {
      const bj::object none;
      out.emplace(key,
                  normalized(value.*M::pointer,
                             found != nullptr && found->is_object() ? found->get_object() : none));
    } else if constexpr (json_detail::is_a<Field, std::vector>) {
      // A list may contain secrets, so it is kept as given.
      out.emplace(key, found != nullptr ? *found : bj::value(bj::array{}));
    } else {
      bj::value encoded = encode_field(value.*M::pointer);
      if (!encoded.is_null()) out.emplace(key, std::move(encoded));
    }
  });
  return out;
}

}  // namespace form_detail

// The config as a host stores it, with secrets as they were given.
template <class Config>
bj::object normalized_config(const Config& config, const bj::object& given) {
  return form_detail::normalized(config, given);
}

// The config as a host stores it, without secrets.
template <class Config>
bj::object shown_config(const Config& config) {
  return form_detail::normalized(config, {});
}

// A schema that refuses unknown keys does so at every depth.
template <class Config>
bj::object config_schema(UnknownKeys unknown = UnknownKeys::ignore) {
  return form_detail::struct_schema<Config>(unknown);
}

// Null means absent, for every known field.
template <class Config>
bj::object without_nulls(bj::object given) {
  form_detail::respell<Config>(given, false);
  return given;
}

// What a person or a form wrote: also without blanks around texts, without texts that hold nothing
// else where a field may be absent, and with the number that a text spells.
template <class Config>
bj::object as_written(bj::object given) {
  form_detail::respell<Config>(given, true);
  return given;
}

// Adds an issue for every invalid field; such a field keeps its default.
template <class Config>
Config read_config_into(const bj::object& given, JsonIssues& issues,
                        RangeWords words = RangeWords::nearest) {
  Config config{};
  form_detail::read_struct(given, config, words, JsonAt{}, issues);
  return config;
}

// The error's issues list every invalid field. By default, keys that the struct does not know are
// left to the host.
template <class Config>
Result<Config> read_config(const bj::object& given, const ConfigReading& how = {}) {
  JsonIssues issues{how.unknown, how.prefix};
  Config config = read_config_into<Config>(given, issues, how.range);
  if (!issues.list().empty()) return std::unexpected(std::move(issues).to_error(how.code));
  return config;
}

// The same, for a config with rules between its fields: `check(config, issues)` adds what they
// forbid. It runs only where every field is right.
template <class Config, class Check>
Result<Config> read_config(const bj::object& given, const ConfigReading& how, const Check& check) {
  BERTH_TRY(Config config, read_config<Config>(given, how));
  JsonIssues issues{how.unknown, how.prefix};
  check(config, issues);
  if (!issues.list().empty()) return std::unexpected(std::move(issues).to_error(how.code));
  return config;
}

}  // namespace berth
