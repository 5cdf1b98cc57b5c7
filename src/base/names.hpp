#pragma once

#include <boost/describe/enum.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace berth {

template <class E>
concept DescribedEnum = std::is_enum_v<E> && boost::describe::has_describe_enumerators<E>::value;

namespace names_detail {

// A trailing underscore only distinguishes an enumerator from a keyword: `operator_` is "operator".
constexpr std::string_view spelled(std::string_view enumerator) {
  return enumerator.ends_with('_') ? enumerator.substr(0, enumerator.size() - 1) : enumerator;
}

}  // namespace names_detail

// Enumerators have their wire spelling, so a value's name is its enumerator.
template <DescribedEnum E>
constexpr std::string_view name_of(E value) {
  std::string_view name = "";
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto d) {
    if (d.value == value) name = names_detail::spelled(d.name);
  });
  return name;
}

template <DescribedEnum E>
constexpr auto all() {
  using List = boost::describe::describe_enumerators<E>;
  std::array<E, boost::mp11::mp_size<List>::value> values{};
  std::size_t at = 0;
  boost::mp11::mp_for_each<List>([&](auto d) { values[at++] = d.value; });
  return values;
}

template <DescribedEnum E>
constexpr std::optional<E> parse_name(std::string_view text) {
  std::optional<E> found;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto d) {
    if (text == names_detail::spelled(d.name)) found = d.value;
  });
  return found;
}

// "local, ssh, sandbox, plugin": for messages that list the valid values.
template <DescribedEnum E>
std::string names_of() {
  std::string text;
  for (const E value : all<E>()) text += (text.empty() ? "" : ", ") + std::string{name_of(value)};
  return text;
}

}  // namespace berth
