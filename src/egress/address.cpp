#include "egress/address.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace berth::egress {
namespace {

struct Named {
  const char* range;
  const char* name;
};

constexpr Named reserved_ranges[] = {
    {"0.0.0.0/8", "unspecified"},
    {"10.0.0.0/8", "private"},
    {"100.64.0.0/10", "shared (carrier-grade NAT)"},
    {"127.0.0.0/8", "loopback"},
    {"169.254.0.0/16", "link-local"},
    {"172.16.0.0/12", "private"},
    {"192.0.0.0/24", "reserved"},
    {"192.0.2.0/24", "documentation"},
    {"192.88.99.0/24", "reserved"},
    {"192.168.0.0/16", "private"},
    {"198.18.0.0/15", "benchmarking"},
    {"198.51.100.0/24", "documentation"},
    {"203.0.113.0/24", "documentation"},
    {"224.0.0.0/4", "multicast"},
    {"240.0.0.0/4", "reserved"},
    {"255.255.255.255/32", "broadcast"},
    // Only 2000::/3 is assigned as global unicast; the named ranges below are parts of the rest.
    {"::/3", "reserved"},
    {"4000::/2", "reserved"},
    {"8000::/1", "reserved"},
    {"::/128", "unspecified"},
    {"::1/128", "loopback"},
    {"::/96", "IPv4 inside IPv6"},
    {"::ffff:0:0/96", "IPv4 inside IPv6"},
    {"64:ff9b::/96", "IPv4 inside IPv6 (NAT64)"},
    {"64:ff9b:1::/48", "IPv4 inside IPv6 (NAT64)"},
    {"100::/64", "discard"},
    {"2001::/32", "IPv4 inside IPv6 (Teredo)"},
    {"2001:10::/28", "reserved"},
    {"2001:20::/28", "reserved"},
    {"2001:2::/48", "benchmarking"},
    {"2001:db8::/32", "documentation"},
    {"2002::/16", "IPv4 inside IPv6 (6to4)"},
    {"3fff::/20", "documentation"},
    {"fc00::/7", "private"},
    {"fe80::/10", "link-local"},
    {"fec0::/10", "site-local"},
    {"ff00::/8", "multicast"},
    // A client that reaches one of these gets the machine's credentials.
    {"169.254.169.254/32", "metadata service"},
    {"169.254.170.2/32", "metadata service"},
    {"169.254.170.23/32", "metadata service"},
    {"169.254.42.42/32", "metadata service"},
    {"100.100.100.200/32", "metadata service"},
    {"168.63.129.16/32", "metadata service"},
    {"192.0.0.192/32", "metadata service"},
    {"fd00:ec2::254/128", "metadata service"},
    {"fd00:ec2::23/128", "metadata service"},
    {"fd20:ce::254/128", "metadata service"},
    {"fd00:c1::a9fe:a9fe/128", "metadata service"},
};

bool same_start(const Address& a, const Address& b, unsigned bits) {
  const unsigned whole = bits / 8;
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + whole, b.bytes.begin())) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || ((a.bytes.at(whole) ^ b.bytes.at(whole)) >> (8 - rest)) == 0;
}

Address cut_after(Address address, unsigned bits) {
  for (unsigned at = bits; at < address.bits(); ++at) {
    address.bytes.at(at / 8) &= static_cast<std::uint8_t>(~(0x80U >> (at % 8)));
  }
  return address;
}

}  // namespace

std::optional<Address> Address::parse(std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN || text.contains('\0')) return std::nullopt;
  const std::string terminated{text};
  Address address;
  if (::inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1) return address;
  address.family = Family::v6;
  if (::inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::string Address::str() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family == Family::v4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

Address Address::plain() const {
  constexpr std::size_t v4_at = 12;
  if (family == Family::v4) return *this;
  const auto zero = [](std::uint8_t byte) { return byte == 0; };
  const bool mapped = bytes[10] == 0xff && bytes[11] == 0xff;
  const bool compatible = bytes[10] == 0 && bytes[11] == 0;
  if (!std::all_of(bytes.begin(), bytes.begin() + 10, zero) || (!mapped && !compatible)) {
    return *this;
  }
  // :: and ::1 are IPv6 addresses themselves.
  const bool own = std::all_of(bytes.begin() + v4_at, bytes.end() - 1, zero) && bytes.back() <= 1;
  if (compatible && own) return *this;
  Address v4;
  std::copy(bytes.begin() + v4_at, bytes.end(), v4.bytes.begin());
  return v4;
}

Result<Range> Range::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = Address::parse(text.substr(0, slash));
  if (!address) {
    return fail(Errc::validation_failed, in_quotes(text.substr(0, slash)) + " is not an IP address",
                "write an address as 192.0.2.1 or 2001:db8::1, a range as 192.0.2.0/24");
  }
  Range range{.first = *address, .bits = address->bits()};
  if (slash == std::string_view::npos) return range;
  const std::string_view prefix = text.substr(slash + 1);
  const auto [end, error] =
      std::from_chars(prefix.data(), prefix.data() + prefix.size(), range.bits);
  const bool whole = error == std::errc{} && end == prefix.data() + prefix.size();
  if (!whole || range.bits > address->bits() || (prefix.size() > 1 && prefix.front() == '0')) {
    return fail(Errc::validation_failed, "'/" + std::string{clipped(prefix, 20)} +
                                             "' is not a prefix length from 0 to " +
                                             std::to_string(address->bits()));
  }
  range.first = cut_after(*address, range.bits);
  if (range.first != *address) {
    return fail(Errc::validation_failed, in_quotes(text) + " has bits set behind its prefix",
                "write " + range.str() + " for the whole range or " + address->str() +
                    " for the one address");
  }
  return range;
}

bool Range::contains(const Address& address) const {
  return address.family == first.family && same_start(address, first, bits);
}

bool Range::contains(const Range& other) const {
  return other.bits >= bits && contains(other.first);
}

std::string Range::str() const {
  return first.str() + "/" + std::to_string(bits);
}

std::vector<SpecialRange> special_ranges() {
  std::vector<SpecialRange> ranges;
  for (const Named& named : reserved_ranges) {
    const Result<Range> range = Range::parse(named.range);
    BERTH_ASSERT(range.has_value());
    ranges.push_back({*range, named.name});
  }
  return ranges;
}

bool is_among(const Address& address, const std::vector<SpecialRange>& ranges) {
  const Address plain = address.plain();
  return std::ranges::any_of(ranges, [&](const SpecialRange& one) {
    return one.range.contains(address) || one.range.contains(plain);
  });
}

}  // namespace berth::egress
