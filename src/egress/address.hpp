#pragma once

#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Addresses and ranges as values: no sockets, no look-ups.
namespace berth::egress {

struct Address {
  enum class Family { v4, v6 };

  Family family = Family::v4;
  std::array<std::uint8_t, 16> bytes = {};  // IPv4 uses the first four

  // One spelling per address: four decimal numbers without leading zeros, or RFC 4291 text without
  // a zone. Rejects everything else that some resolver would accept as an address.
  static std::optional<Address> parse(std::string_view text);
  std::string str() const;
  unsigned bits() const { return family == Family::v4 ? 32 : 128; }

  // The IPv4 address in an IPv6 one (::ffff:127.0.0.1, ::127.0.0.1): the kernel connects to that
  // one.
  Address plain() const;

  friend auto operator<=>(const Address&, const Address&) = default;
};

// "10.0.0.0/8": all addresses with the same leading bits.
struct Range {
  Address first = {};
  unsigned bits = 32;

  // A single address is a range that contains only itself. Fails validation_failed, also if bits
  // after the prefix are set, because the intended range is then unclear.
  static Result<Range> parse(std::string_view text);
  bool contains(const Address& address) const;
  bool contains(const Range& other) const;
  std::string str() const;

  friend bool operator==(const Range&, const Range&) = default;
};

// Addresses that no name rule opens, with their kind: "loopback", "metadata service".
struct SpecialRange {
  Range range;
  std::string name;
};

// Everything outside the public internet: loopback, link-local, private, shared, multicast,
// unspecified, documentation, reserved, IPv4 inside IPv6, and cloud metadata services.
std::vector<SpecialRange> special_ranges();

// Whether one of the ranges contains the address, or the IPv4 address inside it.
bool is_among(const Address& address, const std::vector<SpecialRange>& ranges);

}  // namespace berth::egress
