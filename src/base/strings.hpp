#pragma once

#include <string>
#include <string_view>
#include <vector>

// Text as programs write it: names, fields and lines, whose letters are those of ASCII. Nothing
// here depends on a locale.
namespace berth {

inline constexpr std::string_view blanks = " \t\r\n\v\f";

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);
// Without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blank = blanks);
std::string joined(const std::vector<std::string>& texts, std::string_view joint = ", ");

}  // namespace berth
