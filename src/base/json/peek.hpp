#pragma once

#include "base/json/json.hpp"

// Reads JSON that was not written for us to validate: the answer of another program, a row of an
// older server, metadata. A value of another type counts as absent.
namespace berth {

// One field, if the object has it and it is a T.
template <class T>
std::optional<T> peek(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  if (found == nullptr || found->is_null()) return std::nullopt;
  JsonIssues unread{UnknownKeys::ignore};
  std::optional<T> value = decode_at<T>(*found, JsonAt{}, unread);
  return unread.list().empty() ? std::move(value) : std::nullopt;
}

template <class T>
std::optional<T> peek(const bj::value& value, std::string_view key) {
  const bj::object* object = value.if_object();
  return object != nullptr ? peek<T>(*object, key) : std::nullopt;
}

template <class T>
std::optional<T> peek(const std::optional<bj::object>& object, std::string_view key) {
  return object ? peek<T>(*object, key) : std::nullopt;
}

// Without a copy: null if the field is absent or not an object.
inline const bj::object* object_in(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  return found != nullptr ? found->if_object() : nullptr;
}

inline const bj::array* array_in(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  return found != nullptr ? found->if_array() : nullptr;
}

inline std::optional<std::string> text_in(const bj::object& object, std::string_view key) {
  return peek<std::string>(object, key);
}

// Exactly true: neither 1 nor "true".
inline bool is_true_in(const bj::object& object, std::string_view key) {
  return peek<bool>(object, key).value_or(false);
}

// A described struct from the fields that have its types. Every other member keeps its default.
template <class T>
T read_loosely(const bj::object& object) {
  T out{};
  boost::mp11::mp_for_each<MembersOf<T>>([&]<class M>(M /*member*/) {
    using Field = json_detail::FieldOf<T, M>;
    if (std::optional<Field> found = peek<Field>(object, wire_name<M>())) {
      out.*M::pointer = *std::move(found);
    }
  });
  return out;
}

template <class T>
T read_loosely(const std::optional<bj::object>& object) {
  return object ? read_loosely<T>(*object) : T{};
}

template <class T>
T read_loosely(const bj::value& value) {
  const bj::object* object = value.if_object();
  return object != nullptr ? read_loosely<T>(*object) : T{};
}

}  // namespace berth
