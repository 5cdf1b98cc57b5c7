#pragma once

#include "base/result.hpp"
#include "egress/address.hpp"

// DNS queries and responses (RFC 1035, RFC 6891), as far as a worker's resolver needs them: one
// question, and at most one address as the answer. No I/O.
namespace berth::egress {

inline constexpr std::size_t dns_query_bytes_max = 1024;

enum class DnsCode : std::uint8_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
};

struct DnsQuery {
  static constexpr std::uint16_t type_a = 1;
  static constexpr std::uint16_t class_internet = 1;

  std::uint16_t id = 0;
  bool wants_recursion = false;
  bool extended = false;      // the client supports EDNS
  std::string question = {};  // unchanged, because clients compare the case of the letters
  std::string name = {};      // labels separated by dots; not checked to be a host name
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
};

// Fails bad_request for everything but one plain question. A question's name is not compressed,
// because no name precedes it.
Result<DnsQuery> parse_dns_query(std::string_view datagram);

// The response, with the address if given; otherwise without a record of the type.
std::string dns_response(const DnsQuery& query, DnsCode code, const std::optional<Address>& address,
                         std::uint32_t ttl_seconds);

// The response to a malformed query. Empty if the datagram is not a query at all: responding to a
// response could loop forever.
std::optional<std::string> dns_rejection(std::string_view datagram);

}  // namespace berth::egress
