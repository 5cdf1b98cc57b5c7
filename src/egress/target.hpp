#pragma once

#include "egress/address.hpp"

namespace berth::egress {

// The name that always leads to the server's own API, and to nothing else.
inline constexpr std::string_view callback_name = "berth.internal";

// Where a request wants to go, in the one spelling that rules, look-up and log share.
struct Target {
  std::string host;                // lower case, no final dot; an address as Address::str() has it
  std::optional<Address> address;  // when the host is an address and no name
  std::uint16_t port = 0;

  // "example.org:443", "[2001:db8::1]:443".
  std::string str() const;
  // As a Host field has it: without the port when it is the one of plain HTTP.
  std::string authority() const;

  friend bool operator==(const Target&, const Target&) = default;
};

// "Example.ORG." is "example.org". Refuses what is no host name of letters, digits, hyphens and
// underscores, and what some resolver takes for an address: "2130706433", "0x7f.1", "0177.0.0.1".
// Fails validation_failed.
Result<std::string> normalised_name(std::string_view text);

// A decimal number from 1 to 65535.
std::optional<std::uint16_t> parse_port(std::string_view text);

// "host:port", "1.2.3.4:port", "[::1]:port"; without a port the default one counts, and where there
// is none the port is required. No user, no zone, no IPv4 inside IPv6. Fails validation_failed.
Result<Target> parse_target(std::string_view authority, std::optional<std::uint16_t> default_port);

}  // namespace berth::egress
