#pragma once

#include "base/json/json_schema.hpp"

#include <optional>
#include <string_view>
#include <vector>

// The members of a described struct as data, for transports that have only text.
namespace berth::api {

// How text becomes the JSON value that a member expects.
enum class Kind { text, integer, boolean };
enum class Need { required, optional };

struct Field {
  std::string_view name;  // as on the wire
  Kind kind;
  Need need;
};

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

namespace fields_detail {

template <class T, class... M>
std::vector<Field> fields_of(boost::mp11::mp_list<M...> /*members*/) {
  const auto one = []<class Member>(Member /*member*/) {
    using Value = json_detail::FieldOf<T, Member>;
    const bool may_be_absent = json_detail::is_a<Value, std::optional>;
    return Field{.name = wire_name<Member>(),
                 .kind = kind_of<Bare<Value>>(),
                 .need = may_be_absent ? Need::optional : Need::required};
  };
  return {one(M{})...};
}

template <class T, class... M>
std::vector<bj::object> schemas_of(SchemaBook& book, boost::mp11::mp_list<M...> /*members*/) {
  return {book.schema<Bare<json_detail::FieldOf<T, M>>>()...};
}

}  // namespace fields_detail

template <class T>
std::vector<Field> fields_of() {
  return fields_detail::fields_of<T>(MembersOf<T>{});
}

// One schema per field, in the same order.
template <class T>
std::vector<bj::object> schemas_of(SchemaBook& book) {
  return fields_detail::schemas_of<T>(book, MembersOf<T>{});
}

}  // namespace berth::api
