#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace berth {
namespace {

// Long enough for a whole digest with its algorithm name: a prefix looks like another digest.
constexpr std::size_t quote_bytes_max = 128;

// The length that a first byte announces; 0 for bytes that do not start a character.
std::size_t announced_length(unsigned first) {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};
constexpr std::array unseen = {Range{0x00ad, 0x00ad},  Range{0x061c, 0x061c}, Range{0x200b, 0x200f},
                               Range{0x2028, 0x202e},  Range{0x2060, 0x2069}, Range{0xfeff, 0xfeff},
                               Range{0xe0000, 0xe007f}};

}  // namespace

std::size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t length = announced_length(byte(0));
  if (length < 2) return length;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // The second byte reveals overlong forms, surrogates and values above U+10FFFF.
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) >= 0xa0;
  const bool too_high = byte(0) == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

std::size_t cut_character_length(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(3, text.size()); ++length) {
    const std::string_view tail = text.substr(text.size() - length);
    const auto first = static_cast<unsigned char>(tail.front());
    if ((first & 0xc0) == 0x80) continue;
    if (announced_length(first) <= length) return 0;
    // Some rest must complete the character: the second byte alone can rule that out.
    for (const char fill : {'\x80', '\xbf'}) {
      std::string whole{tail};
      whole.resize(announced_length(first), fill);
      if (character_length(whole) != 0) return length;
    }
    return 0;
  }
  return 0;
}

std::string_view clipped(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  // A character has at most three bytes after its first; more are not valid text anyway.
  for (int back = 0; back < 3 && end > 0; ++back) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) break;
    --end;
  }
  return text.substr(0, end);
}

bool is_utf8(std::string_view text) {
  // Most text is plain ASCII: eight bytes at once.
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  while (!text.empty()) {
    std::uint64_t piece = 0;
    if (text.size() >= sizeof piece) {
      std::memcpy(&piece, text.data(), sizeof piece);
      if ((piece & high_bits) == 0) {
        text.remove_prefix(sizeof piece);
        continue;
      }
    }
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  std::uint32_t point = first & (0x7fU >> character.size());
  for (const char next : character.substr(1)) {
    point = (point << 6) | (static_cast<unsigned char>(next) & 0x3fU);
  }
  return point;
}

bool is_unseen(std::uint32_t point) {
  return std::ranges::any_of(
      unseen, [&](const Range& range) { return point >= range.first && point <= range.last; });
}

std::string as_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  return "'" + as_utf8(clipped(text, quote_bytes_max)) + "'";
}

}  // namespace berth
