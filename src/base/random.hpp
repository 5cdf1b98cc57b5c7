#pragma once

#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth {

// Randomness as an argument. Safe to use from any thread.
class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<unsigned char> out) = 0;
};

// The kernel's generator; it never fails once the machine has booted.
class SystemRandom final : public Random {
 public:
  void fill(std::span<unsigned char> out) override;
};

// The same bytes from the same seed, for tests. Not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  void fill(std::span<unsigned char> out) override;

 private:
  std::uint64_t state_;
};

// A version 7 UUID: its first 48 bits are the time, so that keys created together are adjacent in
// an index.
std::string make_uuid(Random& random, Time now);
// Random bytes as text that is safe in URLs, headers and file names.
std::string random_base64url(Random& random, std::size_t bytes);
std::string base64url(std::span<const unsigned char> bytes);
// The bytes of such a text; nothing if base64url would not have produced it.
std::optional<std::string> from_base64url(std::string_view text);
std::string hex(std::span<const unsigned char> bytes);

}  // namespace berth
