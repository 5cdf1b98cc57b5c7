#include "base/random.hpp"

#include "base/assert.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <vector>

namespace berth {
namespace {

constexpr std::string_view base64url_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

void SystemRandom::fill(std::span<unsigned char> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    BERTH_ASSERT(got > 0);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void SeededRandom::fill(std::span<unsigned char> out) {
  for (unsigned char& byte : out) {
    // splitmix64: every seed gives a full-period stream.
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    byte = static_cast<unsigned char>(z >> 56);
  }
}

std::string hex(std::span<const unsigned char> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string base64url(std::span<const unsigned char> bytes) {
  std::string text;
  std::uint32_t held = 0;
  int bits = 0;
  for (const unsigned char byte : bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 6; bits -= 6) text += base64url_digits[(held >> (bits - 6)) & 63];
  }
  if (bits > 0) text += base64url_digits[(held << (6 - bits)) & 63];
  return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char digit : text) {
    const std::size_t value = base64url_digits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    held = (held << 6) | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits);
  }
  // An extra digit, or unused bits that are set: another spelling of the same bytes.
  const bool canonical = bits < 6 && (held & ((1U << bits) - 1)) == 0;
  return canonical ? std::optional{std::move(bytes)} : std::nullopt;
}

std::string random_base64url(Random& random, std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  random.fill(raw);
  return base64url(raw);
}

std::string make_uuid(Random& random, Time now) {
  std::array<unsigned char, 16> raw{};
  random.fill(raw);
  for (int i = 0; i < 6; ++i)
    raw[static_cast<std::size_t>(i)] = static_cast<unsigned char>(now.ms >> (40 - 8 * i));
  raw[6] = static_cast<unsigned char>((raw[6] & 0x0f) | 0x70);
  raw[8] = static_cast<unsigned char>((raw[8] & 0x3f) | 0x80);
  std::string text = hex(raw);
  for (const std::size_t at : {8, 13, 18, 23}) text.insert(at, 1, '-');
  return text;
}

}  // namespace berth
