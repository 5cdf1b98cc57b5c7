#pragma once

#include "base/json/json.hpp"

#include <boost/mp11/algorithm.hpp>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// An environment's config, from one described struct: its JSON Schema, from which a host draws a
// form; its defaults, which are those of the members; and the reader that reports invalid fields
// one by one. A Secret is a `secret-ref` field: the host stores its value separately, and inserts
// it just before each call.
namespace berth::sdk {

// The help text of one field, and constraints on its value besides its type.
struct Note {
  std::string_view title = {};
  std::string_view says = {};
  std::string_view unit = {};  // "ms": shown after the title
  std::optional<std::int64_t> low = {};
  std::optional<std::int64_t> high = {};
  bool required = false;  // and not empty
  bool advanced = false;  // shown only on request
  std::string_view group = {};
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

namespace form_detail {

template <class Config>
Notes<Config> notes_of() {
  if constexpr (requires { Config::notes(); }) {
    return Config::notes();
  } else {
    return {};
  }
}

template <class Config>
Note note_on(std::string_view key) {
  for (const FieldNote<Config>& field : notes_of<Config>()) {
    if (field.key == key) return field.note;
  }
  return {};
}

template <class T>
inline constexpr bool is_secret = std::same_as<T, Secret>;
template <class T>
inline constexpr bool is_secret<std::optional<T>> = is_secret<T>;

void annotate(bj::object& schema, const Note& note);
// Adds an issue for each constraint of the note that the value violates.
void check(const bj::object& given, std::string_view key, const Note& note, const JsonAt& at,
           JsonIssues& issues);

template <class T>
bj::object schema_of();

// 300000, not 3E5: hosts and users expect a whole number.
bj::value number(double value);

template <class T>
bj::value encode_field(const T& value) {
  if constexpr (std::floating_point<T>) {
    return number(value);
  } else {
    return encode(value);
  }
}

// A member's default, as a schema shows it. Nothing for a secret or an empty optional.
template <class T>
std::optional<bj::value> default_of(const T& value) {
  using namespace json_detail;
  if constexpr (is_secret<T>) {
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
bj::object struct_schema() {
  bj::object properties;
  bj::array required;
  const T defaults{};
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    const Note note = note_on<T>(wire_name<M>());
    bj::object property = schema_of<Field>();
    annotate(property, note);
    if (note.required) required.emplace_back(wire_name<M>());
    if constexpr (!DescribedStruct<Field>) {
      const auto fallback = note.required ? std::nullopt : default_of(defaults.*M::pointer);
      if (fallback) property["default"] = *fallback;
    }
    properties.emplace(wire_name<M>(), std::move(property));
  });
  bj::object out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

template <class T>
bj::object schema_of() {
  using namespace json_detail;
  if constexpr (is_secret<T>) {
    return {{"type", "string"}, {"format", "secret-ref"}};
  } else if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::integral<T>) {
    return {{"type", "integer"}};
  } else if constexpr (std::floating_point<T>) {
    return {{"type", "number"}};
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (DescribedEnum<T>) {
    bj::array names;
    for (const T value : all<T>()) names.emplace_back(name_of(value));
    return {{"type", "string"}, {"enum", std::move(names)}};
  } else if constexpr (is_a<T, std::optional>) {
    return schema_of<typename T::value_type>();
  } else if constexpr (is_a<T, std::vector>) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>()}};
  } else if constexpr (is_a<T, std::map>) {
    return {{"type", "object"}, {"additionalProperties", schema_of<typename T::mapped_type>()}};
  } else {
    static_assert(DescribedStruct<T>, "describe the struct with BOOST_DESCRIBE_STRUCT");
    return struct_schema<T>();
  }
}

// Adds missing members, so that the decoder finds every one.
template <class T>
void lay_defaults_under(bj::object& given) {
  const T defaults{};
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    const std::string_view key = wire_name<M>();
    bj::value* found = given.if_contains(key);
    if (found == nullptr) {
      auto fallback = default_of(defaults.*M::pointer);
      if (!fallback && std::same_as<Field, Secret>) fallback = "";
      if (fallback) given.emplace(key, *std::move(fallback));
      found = given.if_contains(key);
    }
    if constexpr (DescribedStruct<Field>) {
      if (found != nullptr && found->is_object()) lay_defaults_under<Field>(found->get_object());
    }
  });
}

template <class T>
void check_notes(const bj::object& given, const JsonAt& at, JsonIssues& issues) {
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    const std::string_view key = wire_name<M>();
    const JsonAt here{at, key};
    check(given, key, note_on<T>(key), here, issues);
    if constexpr (DescribedStruct<Field>) {
      const bj::value* inner = given.if_contains(key);
      if (inner != nullptr && inner->is_object()) {
        check_notes<Field>(inner->get_object(), here, issues);
      }
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

// The config as a host stores it, without secrets.
template <class Config>
bj::object shown_config(const Config& config) {
  return form_detail::normalized(config, {});
}

template <class Config>
bj::object config_schema() {
  return form_detail::struct_schema<Config>();
}

// The error's issues list every invalid field. Keys that the struct does not know are left to the
// host.
template <class Config>
Result<Config> read_config(const bj::object& given) {
  bj::object whole = given;
  form_detail::lay_defaults_under<Config>(whole);
  JsonIssues issues{UnknownKeys::ignore};
  form_detail::check_notes<Config>(given, JsonAt{}, issues);
  std::optional<Config> config = decode_at<Config>(whole, JsonAt{}, issues);
  if (!config || !issues.list().empty()) return std::unexpected(std::move(issues).to_error());
  return *std::move(config);
}

}  // namespace berth::sdk
