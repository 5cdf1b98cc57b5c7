#include "egress/target.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>

namespace berth::egress {
namespace {

constexpr std::size_t host_bytes_max = 253;
constexpr std::size_t host_label_bytes_max = 63;

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || is_decimal(c) || c == '-' || c == '_';
}

std::unexpected<Error> wrong_name(std::string_view text, std::string_view why,
                                  std::string remedy = {}) {
  return fail(Errc::validation_failed, in_quotes(text) + " " + std::string{why}, std::move(remedy));
}

// The URL standard's rule: a host whose last label is a number is an IPv4 address in some spelling,
// whatever precedes it.
bool ends_in_number(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (std::ranges::all_of(last, is_decimal)) return true;
  if (!last.starts_with("0x")) return false;
  return std::ranges::all_of(last.substr(2),
                             [](char c) { return is_decimal(c) || (c >= 'a' && c <= 'f'); });
}

bool holds_ipv4(const Address& address) {
  if (address.family == Address::Family::v4) return false;
  const auto& bytes = address.bytes;
  const bool zeros = std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; });
  return zeros && bytes[10] == 0xff && bytes[11] == 0xff;
}

}  // namespace

std::string Target::str() const {
  const bool bracketed = address && address->family == Address::Family::v6;
  return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string Target::authority() const {
  std::string text = str();
  if (port == 80) text.erase(text.rfind(':'));
  return text;
}

Result<std::string> normalised_name(std::string_view text) {
  std::string name{text};
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (name.ends_with('.')) name.pop_back();
  if (name.empty()) return wrong_name(text, "is not a host name");
  if (name.size() > host_bytes_max) return wrong_name(text, "is longer than a host name can be");
  if (std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    return wrong_name(text, "has letters outside of ASCII",
                      "write the name in its ASCII form, which begins with xn--");
  }
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string_view label = std::string_view{name}.substr(at, end - at);
    const bool fits = !label.empty() && label.size() <= host_label_bytes_max &&
                      label.front() != '-' && label.back() != '-' &&
                      std::ranges::all_of(label, is_name_character);
    if (!fits) {
      return wrong_name(text, "is not a host name",
                        "write letters, digits and hyphens between single dots, and nothing else");
    }
    at = end + 1;
  }
  if (ends_in_number(name)) {
    return wrong_name(text, "is a number where a name should stand",
                      "write an IPv4 address as four decimal numbers without leading zeros");
  }
  return name;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || text.front() == '0') return std::nullopt;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

Result<Target> parse_target(std::string_view authority, std::optional<std::uint16_t> default_port) {
  if (authority.contains('@')) {
    return wrong_name(authority, "has a user in it", "write the host and the port only");
  }
  std::string_view host = authority;
  std::optional<std::string_view> port;
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return wrong_name(authority, "has an open bracket");
  const std::size_t colon = authority.find(':', bracket);
  if (colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  Target target;
  const auto number = port ? parse_port(*port) : default_port;
  if (!number) {
    return wrong_name(authority, port ? "has an invalid port" : "has no port",
                      "write HOST:PORT with a port from 1 to 65535");
  }
  target.port = *number;
  if (bracket > 0) {
    if (host.size() != bracket + 1) return wrong_name(authority, "goes on behind its bracket");
    target.address = Address::parse(host.substr(1, bracket - 1));
    if (!target.address || target.address->family != Address::Family::v6) {
      return wrong_name(authority, "has no IPv6 address in its brackets",
                        "write the address without a zone, as [2001:db8::1]:443");
    }
    if (holds_ipv4(*target.address)) {
      return wrong_name(authority, "hides an IPv4 address in an IPv6 one",
                        "write the IPv4 address itself");
    }
  } else if (const auto address = Address::parse(host);
             address && address->family == Address::Family::v4) {
    target.address = address;
  }
  if (target.address) {
    target.host = target.address->str();
    return target;
  }
  BERTH_TRY(target.host, normalised_name(host));
  return target;
}

}  // namespace berth::egress
