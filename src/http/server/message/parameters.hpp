#pragma once

#include "base/json/json.hpp"
#include "http/route.hpp"

#include <map>
#include <string>
#include <string_view>

// Decodes path or query text into a described struct with the mapper that decodes bodies: each text
// becomes the JSON value that its member expects.
namespace berth::http {

namespace parameters_detail {

enum class Kind { text, integer, boolean };

template <class T>
struct BareOf {
  using Type = T;
};
template <class T>
struct BareOf<std::optional<T>> {
  using Type = T;
};
template <class T>
using Bare = typename BareOf<T>::Type;

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::same_as<T, bool>) {
    return Kind::boolean;
  } else if constexpr (std::integral<T>) {
    return Kind::integer;
  } else {
    static_assert(std::same_as<T, std::string> || std::same_as<T, Time> || DescribedEnum<T> ||
                      json_detail::is_id<T>,
                  "a parameter is a string, an integer, a boolean, an enum, a Time or an Id");
    return Kind::text;
  }
}

// Text that does not fit remains text, and the mapper reports what was expected.
bj::value to_value(Kind kind, std::string_view text);
// Rewrites the mapper's error for parameters; the message names, for example, "query parameter
// 'limit'".
Error to_parameter_error(std::string_view where, Error error);

template <class T, class... M>
Kind kind_of_member(std::string_view name, boost::mp11::mp_list<M...> /*members*/) {
  Kind kind = Kind::text;
  const auto look = [&]<class Member>(Member /*member*/) {
    if (name == wire_name<Member>()) kind = kind_of<Bare<json_detail::FieldOf<T, Member>>>();
  };
  (look(M{}), ...);
  return kind;
}

template <class T>
Result<T> decode_parameters(const bj::object& values, std::string_view where) {
  Result<T> decoded = decode<T>(bj::value(values));
  if (decoded) return decoded;
  return std::unexpected(to_parameter_error(where, std::move(decoded).error()));
}

}  // namespace parameters_detail

template <class Path>
Result<Path> decode_path(const PathValues& values) {
  using namespace parameters_detail;
  if constexpr (boost::mp11::mp_empty<MembersOf<Path>>::value) {
    return Path{};
  } else {
    bj::object object;
    for (const PathValue& value : values) {
      object[value.name] =
          to_value(kind_of_member<Path>(value.name, MembersOf<Path>{}), value.text);
    }
    return decode_parameters<Path>(object, "path parameter");
  }
}

// Unknown parameters are rejected, so that a misspelt filter does not list everything.
template <class Query>
Result<Query> decode_query(const std::map<std::string, std::string>& values) {
  using namespace parameters_detail;
  bj::object object;
  for (const auto& [name, text] : values) {
    object[name] = to_value(kind_of_member<Query>(name, MembersOf<Query>{}), text);
  }
  return decode_parameters<Query>(object, "query parameter");
}

}  // namespace berth::http
