#pragma once

#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Addresses and ranges as values: no socket, no look-up.
namespace berth::egress {

struct Address {
  enum class Family { v4, v6 };

  Family family = Family::v4;
  std::array<std::uint8_t, 16> bytes = {};  // IPv4 uses the first four

  // One spelling per address: four decimal numbers without leading zeros, or RFC 4291 text without
  // a zone. Everything else that some resolver would take for an address is nothing here.
  static std::optional<Address> parse(std::string_view text);
  std::string str() const;
  unsigned bits() const { return family == Family::v4 ? 32 : 128; }

  // An IPv4 address that IPv6 carries (::ffff:127.0.0.1, ::127.0.0.1) as the IPv4 address itself:
  // the kernel connects to that one.
  Address plain() const;

  friend auto operator<=>(const Address&, const Address&) = default;
};

// "10.0.0.0/8": all addresses that begin with the same bits.
struct Range {
  Address first = {};
  unsigned bits = 32;

  // An address alone is the range that holds only itself. Fails validation_failed, also when bits
  // behind the prefix are set, because then nobody knows which range was meant.
  static Result<Range> parse(std::string_view text);
  bool contains(const Address& address) const;
  bool contains(const Range& other) const;
  std::string str() const;

  friend bool operator==(const Range&, const Range&) = default;
};

// Addresses that no rule about names opens, with what they are: "loopback", "metadata service".
struct SpecialRange {
  Range range;
  std::string name;
};

// Everything that is not the public internet: loopback, link-local, private, shared, multicast,
// unspecified, documentation, reserved, IPv4 inside IPv6, and the metadata services of clouds.
std::vector<SpecialRange> special_ranges();

// Whether one of the ranges holds the address, or the IPv4 address that it carries.
bool is_among(const Address& address, const std::vector<SpecialRange>& ranges);

}  // namespace berth::egress
