#pragma once

#include "base/result.hpp"
#include "keeper/protocol/wire.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

// The text form of described structs: a line `name value` per field and a last line `.`, which
// marks the file as complete. Unknown names are skipped, so that an older reader understands a
// newer file.
namespace berth::keeper {

namespace text_record_detail {

std::string escaped(std::string_view text);
std::string unescaped(std::string_view text);
// The value of the line that starts with the name; empty if there is none.
std::optional<std::string_view> line_of(std::string_view text, std::string_view name);
bool is_whole(std::string_view text);

template <class E>
std::optional<E> parse_named(std::string_view text) {
  for (unsigned i = 0; i < static_cast<unsigned>(E::count_); ++i) {
    if (name_of(static_cast<E>(i)) == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

template <Scalar T>
bool read(std::string_view text, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const std::optional<T> found = parse_named<T>(text);
    value = found.value_or(value);
    return found.has_value();
  } else {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  }
}
inline bool read(std::string_view text, std::string& value) {
  value = unescaped(text);
  return true;
}

template <Scalar T>
std::string written(T value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string{name_of(value)};
  } else {
    return std::to_string(value);
  }
}
inline std::string written(const std::string& value) {
  return escaped(value);
}

}  // namespace text_record_detail

template <Described T>
std::string to_text(const T& value) {
  std::string text;
  for_each_field(value, [&](std::string_view name, const auto& member) {
    text.append(name).append(" ").append(text_record_detail::written(member)).append("\n");
  });
  return text + ".\n";
}

template <Described T>
Result<T> from_text(std::string_view text, std::string_view file) {
  T value;
  std::string wrong = text_record_detail::is_whole(text) ? "" : ".";
  for_each_field(value, [&](std::string_view name, auto& member) {
    const auto line = text_record_detail::line_of(text, name);
    if (wrong.empty() && line && !text_record_detail::read(*line, member)) wrong = name;
  });
  if (wrong.empty()) return value;
  return fail(Errc::io_failed, std::string{file} + ": line '" + wrong + "' is missing or wrong");
}

}  // namespace berth::keeper
