#pragma once

#include <concepts>
#include <string_view>
#include <tuple>
#include <utility>

// One field list per struct defines its binary form on the wire and its text form on disk. This
// program does not use Boost, so the list is a constexpr tuple in the struct.
namespace berth::keeper {

template <class T, class Value>
struct Field {
  std::string_view name;
  Value T::* member;
};

template <class T, class Value>
constexpr Field<T, Value> field(std::string_view name, Value T::* member) {
  return {name, member};
}

template <class T>
concept Described = requires { T::fields(); };

template <Described T, class Visit>
constexpr void for_each_field(T& value, Visit&& visit) {
  std::apply([&](const auto&... entry) { (visit(entry.name, value.*entry.member), ...); },
             std::remove_const_t<T>::fields());
}

}  // namespace berth::keeper
