#include "base/base64.hpp"

#include <array>
#include <cstdint>

namespace berth {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 64;

constexpr std::array<std::uint8_t, 256> base64_values = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(no_digit);
  for (std::size_t i = 0; i < base64_digits.size(); ++i) {
    table[static_cast<unsigned char>(base64_digits[i])] = static_cast<std::uint8_t>(i);
  }
  return table;
}();

// How many '=' end the text; more than two are always wrong and are found as invalid digits.
std::size_t padding_of(std::string_view text) {
  if (text.ends_with("==")) return 2;
  return text.ends_with('=') ? 1 : 0;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view some = bytes.substr(at, 3);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < some.size() ? static_cast<unsigned char>(some[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= some.size() ? base64_digits[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return out;
}

std::optional<std::string> parse_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = padding_of(text);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool padded = at + padding >= text.size();
    const std::uint8_t value = padded ? 0 : base64_values[static_cast<unsigned char>(text[at])];
    if (value == no_digit) return std::nullopt;
    group = group << 6U | value;
    if (at % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) out += static_cast<char>(group >> shift & 0xffU);
    group = 0;
  }
  // Unused bits must be zero, or two texts would encode the same bytes.
  for (std::size_t i = 0; i < padding; ++i) {
    if (out.back() != '\0') return std::nullopt;
    out.pop_back();
  }
  return out;
}

}  // namespace berth
