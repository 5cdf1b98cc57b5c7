#pragma once

#include "base/id.hpp"
#include "base/names.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"
#include "base/text.hpp"
#include "base/time.hpp"

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/list.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// The only mapper between C++ values and JSON. A struct that is described once
// (BOOST_DESCRIBE_STRUCT) is decoded, encoded and documented from that line: `timeout_ms` is
// `timeoutMs` on the wire, an absent key is an empty optional, and every invalid field is reported
// by its JSON pointer.
namespace berth {

namespace bj = boost::json;

// A field of a PATCH body, where "absent" and "null" mean different things.
template <class T>
struct Patch {
  bool given = false;
  std::optional<T> value = {};  // empty and given: the caller wrote null

  const T& or_else(const T& current) const { return value ? *value : current; }
  std::optional<T> or_keep(const std::optional<T>& current) const {
    return given ? value : current;
  }
};

// Typos must surface in our API; plugin responses may have fields that we do not know.
enum class UnknownKeys { refuse, ignore };

// Readers differ in which of two equal keys wins, so our API rejects them. Documents of other
// programs may have them: there the last one wins.
enum class RepeatedKeys { refuse, last_counts };

template <class T>
concept DescribedStruct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;

template <class T>
using MembersOf =
    boost::mp11::mp_rename<boost::describe::describe_members<T, boost::describe::mod_public |
                                                                    boost::describe::mod_inherited>,
                           boost::mp11::mp_list>;

namespace json_detail {

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... A>
inline constexpr bool is_a<Template<A...>, Template> = true;

template <class T>
inline constexpr bool is_id = false;
template <class Tag>
inline constexpr bool is_id<Id<Tag>> = true;

template <class T, class M>
using FieldOf = std::remove_cvref_t<decltype(std::declval<T&>().*M::pointer)>;

template <std::size_t N>
struct CamelCase {
  std::array<char, N> text{};
  std::size_t size = 0;

  constexpr std::string_view view() const { return {text.data(), size}; }
};

constexpr std::size_t length_of(const char* name) {
  return std::string_view{name}.size();
}

template <std::size_t N>
constexpr CamelCase<N> camel_case(const char* name) {
  CamelCase<N> out;
  bool raise = false;
  for (std::size_t i = 0; i < N && name[i] != '\0'; ++i) {
    if (name[i] == '_') {
      raise = true;
      continue;
    }
    const bool lower = name[i] >= 'a' && name[i] <= 'z';
    out.text[out.size++] = raise && lower ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
    raise = false;
  }
  return out;
}

template <class M>
inline constexpr auto wire_name_of = camel_case<length_of(M::name)>(M::name);

}  // namespace json_detail

// A described member's key on the wire.
template <class M>
constexpr std::string_view wire_name() {
  return json_detail::wire_name_of<M>.view();
}

// The decoder's position in the document: a chain on the stack, rendered only for an issue.
class JsonAt {
 public:
  JsonAt() = default;
  JsonAt(const JsonAt& parent, std::string_view key) : parent_(&parent), key_(key) {}
  JsonAt(const JsonAt& parent, std::size_t index) : parent_(&parent), index_(index) {}
  std::string pointer() const;

 private:
  const JsonAt* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

// Collects every invalid field of one document, up to a limit.
class JsonIssues {
 public:
  // `prefix` is the decoded value's JSON pointer if it is part of a larger document.
  explicit JsonIssues(UnknownKeys unknown = UnknownKeys::refuse, std::string prefix = {})
      : unknown_(unknown), prefix_(std::move(prefix)) {}
  void add(const JsonAt& at, std::string message);
  bool refuses_unknown() const { return unknown_ == UnknownKeys::refuse; }
  const std::vector<Issue>& list() const { return list_; }
  // One error that names the first invalid field and lists all of them. An issue that is a full
  // sentence, starting with a capital letter, is left unchanged.
  Error to_error(Errc code = Errc::validation_failed) &&;

 private:
  UnknownKeys unknown_;
  std::string prefix_;
  std::vector<Issue> list_;
};

// Reads JSON text with a depth limit; the error gives the byte where it stopped. A rejected
// repeated key is named by its JSON pointer.
Result<bj::value> parse_json(std::string_view text);
Result<bj::value> parse_json(std::string_view text, RepeatedKeys repeated);

template <class T>
std::optional<T> decode_at(const bj::value& in, const JsonAt& at, JsonIssues& issues);

template <class T>
Result<T> decode(const bj::value& in, UnknownKeys unknown = UnknownKeys::refuse) {
  JsonIssues issues{unknown};
  std::optional<T> value = decode_at<T>(in, JsonAt{}, issues);
  if (!issues.list().empty() || !value) return std::unexpected(std::move(issues).to_error());
  return *std::move(value);
}

template <class T>
Result<T> decode_text(std::string_view text, UnknownKeys unknown = UnknownKeys::refuse) {
  const auto repeated =
      unknown == UnknownKeys::refuse ? RepeatedKeys::refuse : RepeatedKeys::last_counts;
  BERTH_TRY(const bj::value value, parse_json(text, repeated));
  return decode<T>(value, unknown);
}

template <class T>
bj::value encode(const T& value);

template <class T>
std::string encode_text(const T& value);  // UTF-8, whatever bytes the strings have

namespace json_detail {

std::optional<bool> decode_bool(const bj::value& in, const JsonAt& at, JsonIssues& issues);
std::optional<double> decode_double(const bj::value& in, const JsonAt& at, JsonIssues& issues);
std::optional<std::string_view> decode_string(const bj::value& in, const JsonAt& at,
                                              JsonIssues& issues);
std::optional<std::int64_t> decode_integer(const bj::value& in, std::int64_t low, std::int64_t high,
                                           const JsonAt& at, JsonIssues& issues);
const bj::object* decode_object(const bj::value& in, const JsonAt& at, JsonIssues& issues);
const bj::array* decode_array(const bj::value& in, const JsonAt& at, JsonIssues& issues);
// Append a value as JSON text.
void write_string(std::string& out, std::string_view text);
void write_integer(std::string& out, std::int64_t number);
void write_integer(std::string& out, std::uint64_t number);
void write_value(std::string& out, const bj::value& value);
void write_value(std::string& out, const bj::object& value);
void write_value(std::string& out, const bj::array& value);
std::string finished(std::string text);

template <class F>
std::optional<F> decode_field(const bj::object& in, std::string_view key, const JsonAt& at,
                              JsonIssues& issues) {
  const JsonAt here{at, key};
  if (const bj::value* found = in.if_contains(key)) return decode_at<F>(*found, here, issues);
  if constexpr (is_a<F, std::optional> || is_a<F, Patch>) {
    return F{};
  } else {
    issues.add(here, "is required");
    return std::nullopt;
  }
}

// Builds the value in one step: members need no default, and an invalid id never exists, not even
// for an instant.
template <class T, class... M>
std::optional<T> decode_members(const bj::object& in, const JsonAt& at, JsonIssues& issues,
                                boost::mp11::mp_list<M...> /*members*/) {
  if (issues.refuses_unknown()) {
    for (const auto& [key, value] : in) {
      const std::string_view name{key.data(), key.size()};
      if (((name != wire_name<M>()) && ...)) issues.add(JsonAt{at, name}, "is not a known field");
    }
  }
  std::tuple<std::optional<FieldOf<T, M>>...> fields{
      decode_field<FieldOf<T, M>>(in, wire_name<M>(), at, issues)...};
  const bool complete =
      std::apply([](const auto&... field) { return (field.has_value() && ...); }, fields);
  if (!complete) return std::nullopt;
  return std::apply([](auto&&... field) { return T{*std::move(field)...}; }, std::move(fields));
}

template <class T>
std::optional<T> decode_enum(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  const auto text = decode_string(in, at, issues);
  if (!text) return std::nullopt;
  std::optional<T> value = parse_name<T>(*text);
  if (!value) issues.add(at, "is " + in_quotes(*text) + ", expected one of " + names_of<T>());
  return value;
}

template <class T>
std::optional<T> decode_list(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  const bj::array* array = decode_array(in, at, issues);
  if (array == nullptr) return std::nullopt;
  T list;
  bool complete = true;
  for (std::size_t i = 0; i < array->size(); ++i) {
    auto item = decode_at<typename T::value_type>((*array)[i], JsonAt{at, i}, issues);
    complete = complete && item.has_value();
    if (complete) list.push_back(*std::move(item));
  }
  return complete ? std::optional<T>{std::move(list)} : std::nullopt;
}

template <class T>
std::optional<T> decode_map(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  const bj::object* object = decode_object(in, at, issues);
  if (object == nullptr) return std::nullopt;
  T map;
  bool complete = true;
  for (const auto& [key, value] : *object) {
    const std::string_view name{key.data(), key.size()};
    auto item = decode_at<typename T::mapped_type>(value, JsonAt{at, name}, issues);
    complete = complete && item.has_value();
    if (complete) map.emplace(name, *std::move(item));
  }
  return complete ? std::optional<T>{std::move(map)} : std::nullopt;
}

template <class T, class Parse>
std::optional<T> decode_parsed(const bj::value& in, const JsonAt& at, JsonIssues& issues,
                               Parse parse) {
  const auto text = decode_string(in, at, issues);
  if (!text) return std::nullopt;
  Result<T> value = parse(*text);
  if (value) return *std::move(value);
  issues.add(at, value.error().message);
  return std::nullopt;
}

template <class T, class... M>
bj::object encode_members(const T& value, boost::mp11::mp_list<M...> /*members*/) {
  bj::object out;
  out.reserve(sizeof...(M));
  (out.emplace(wire_name<M>(), encode(value.*M::pointer)), ...);
  return out;
}

}  // namespace json_detail

template <class T>
std::optional<T> decode_at(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  using namespace json_detail;
  if constexpr (std::same_as<T, bool>) {
    return decode_bool(in, at, issues);
  } else if constexpr (std::integral<T>) {
    const std::int64_t high = sizeof(T) < 8
                                  ? static_cast<std::int64_t>(std::numeric_limits<T>::max())
                                  : std::numeric_limits<std::int64_t>::max();
    const std::int64_t low =
        std::is_signed_v<T> ? static_cast<std::int64_t>(std::numeric_limits<T>::min()) : 0;
    const auto number = decode_integer(in, low, high, at, issues);
    return number ? std::optional{static_cast<T>(*number)} : std::nullopt;
  } else if constexpr (std::floating_point<T>) {
    return decode_double(in, at, issues);
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, Secret>) {
    const auto text = decode_string(in, at, issues);
    return text ? std::optional<T>{T{*text}} : std::nullopt;
  } else if constexpr (std::same_as<T, bj::value>) {
    return in;
  } else if constexpr (std::same_as<T, bj::object>) {
    const bj::object* object = decode_object(in, at, issues);
    return object != nullptr ? std::optional{*object} : std::nullopt;
  } else if constexpr (std::same_as<T, bj::array>) {
    const bj::array* array = decode_array(in, at, issues);
    return array != nullptr ? std::optional{*array} : std::nullopt;
  } else if constexpr (std::same_as<T, Time>) {
    return decode_parsed<T>(in, at, issues, parse_iso8601);
  } else if constexpr (is_id<T>) {
    return decode_parsed<T>(in, at, issues, T::parse);
  } else if constexpr (DescribedEnum<T>) {
    return decode_enum<T>(in, at, issues);
  } else if constexpr (is_a<T, std::optional>) {
    if (in.is_null()) return T{};
    auto value = decode_at<typename T::value_type>(in, at, issues);
    return value ? std::optional<T>{T{*std::move(value)}} : std::nullopt;
  } else if constexpr (is_a<T, Patch>) {
    using Inner = typename decltype(T::value)::value_type;
    if (in.is_null()) return T{.given = true, .value = {}};
    auto value = decode_at<Inner>(in, at, issues);
    return value ? std::optional<T>{T{.given = true, .value = *std::move(value)}} : std::nullopt;
  } else if constexpr (is_a<T, std::vector>) {
    return decode_list<T>(in, at, issues);
  } else if constexpr (is_a<T, std::map>) {
    return decode_map<T>(in, at, issues);
  } else {
    static_assert(DescribedStruct<T>, "describe the struct with BOOST_DESCRIBE_STRUCT");
    const bj::object* object = decode_object(in, at, issues);
    if (object == nullptr) return std::nullopt;
    return decode_members<T>(*object, at, issues, MembersOf<T>{});
  }
}

template <class T>
bj::value encode(const T& value) {
  using namespace json_detail;
  if constexpr (std::same_as<T, bj::value> || std::same_as<T, bj::object> ||
                std::same_as<T, bj::array>) {
    return value;
  } else if constexpr (std::same_as<T, bool> || std::integral<T> || std::floating_point<T>) {
    return bj::value(value);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return bj::value(bj::string(std::string_view{value}));
  } else if constexpr (std::same_as<T, Time>) {
    return bj::value(bj::string(to_iso8601(value)));
  } else if constexpr (is_id<T>) {
    return bj::value(bj::string(value.str()));
  } else if constexpr (DescribedEnum<T>) {
    return bj::value(bj::string(name_of(value)));
  } else if constexpr (is_a<T, std::optional>) {
    return value ? encode(*value) : bj::value(nullptr);
  } else if constexpr (is_a<T, std::vector>) {
    bj::array out;
    out.reserve(value.size());
    for (const auto& item : value) out.push_back(encode(item));
    return out;
  } else if constexpr (is_a<T, std::map>) {
    bj::object out;
    for (const auto& [key, item] : value) out.emplace(key, encode(item));
    return out;
  } else {
    static_assert(DescribedStruct<T>, "describe the struct with BOOST_DESCRIBE_STRUCT");
    return encode_members(value, MembersOf<T>{});
  }
}

namespace json_detail {

template <class T>
void write(std::string& out, const T& value);

template <class T, class... M>
void write_members(std::string& out, const T& value, boost::mp11::mp_list<M...> /*members*/) {
  char before = '{';
  const auto one = [&](std::string_view name, const auto& field) {
    out += before;
    out += '"';
    out += name;
    out += "\":";
    write(out, field);
    before = ',';
  };
  (one(wire_name<M>(), value.*M::pointer), ...);
  out += before == '{' ? "{}" : "}";
}

template <class T>
void write_list(std::string& out, const T& list) {
  out += '[';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    write(out, list[i]);
  }
  out += ']';
}

template <class T>
void write_map(std::string& out, const T& map) {
  char before = '{';
  for (const auto& [key, item] : map) {
    out += before;
    write_string(out, key);
    out += ':';
    write(out, item);
    before = ',';
  }
  out += before == '{' ? "{}" : "}";
}

// The same text as `encode`, without the tree in between: a response with many rows is mostly field
// names, and each would be allocated once more.
template <class T>
void write(std::string& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    write_integer(out, static_cast<Wide>(value));
  } else if constexpr (std::same_as<T, bj::value> || std::same_as<T, bj::object> ||
                       std::same_as<T, bj::array>) {
    write_value(out, value);
  } else if constexpr (std::floating_point<T>) {
    write_value(out, bj::value(value));
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    write_string(out, value);
  } else if constexpr (std::same_as<T, Time>) {
    write_string(out, to_iso8601(value));
  } else if constexpr (is_id<T>) {
    write_string(out, value.str());
  } else if constexpr (DescribedEnum<T>) {
    write_string(out, name_of(value));
  } else if constexpr (is_a<T, std::optional>) {
    if (value) {
      write(out, *value);
    } else {
      out += "null";
    }
  } else if constexpr (is_a<T, std::vector>) {
    write_list(out, value);
  } else if constexpr (is_a<T, std::map>) {
    write_map(out, value);
  } else {
    static_assert(DescribedStruct<T>, "describe the struct with BOOST_DESCRIBE_STRUCT");
    write_members(out, value, MembersOf<T>{});
  }
}

}  // namespace json_detail

template <class T>
std::string encode_text(const T& value) {
  std::string text;
  json_detail::write(text, value);
  return json_detail::finished(std::move(text));
}

}  // namespace berth
