#pragma once

#include "egress/address.hpp"

namespace berth::egress {

// The name that always leads to the server's own API, and to nothing else.
inline constexpr std::string_view callback_name = "berth.internal";

// A request's destination, in the single spelling that rules, look-ups and the log share.
struct Target {
  std::string host;                // lower case, no final dot; an address as from Address::str()
  std::optional<Address> address;  // if the host is an address, not a name
  std::uint16_t port = 0;

  // "example.org:443", "[2001:db8::1]:443".
  std::string str() const;
  // As in a Host field: without the port if it is plain HTTP's.
  std::string authority() const;

  friend bool operator==(const Target&, const Target&) = default;
};

// "Example.ORG." becomes "example.org". Rejects anything but a host name of letters, digits,
// hyphens and underscores, and what some resolver accepts as an address: "2130706433", "0x7f.1",
// "0177.0.0.1". Fails validation_failed.
Result<std::string> normalised_name(std::string_view text);

// A decimal number from 1 to 65535.
std::optional<std::uint16_t> parse_port(std::string_view text);

// "host:port", "1.2.3.4:port", "[::1]:port". Without a port the default applies; without a default
// the port is required. No user, no zone, no IPv4 inside IPv6. Fails validation_failed.
Result<Target> parse_target(std::string_view authority, std::optional<std::uint16_t> default_port);

}  // namespace berth::egress
