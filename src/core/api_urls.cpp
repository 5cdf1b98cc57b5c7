#include "core/api_urls.hpp"

#include "base/strings.hpp"

#include <algorithm>
#include <charconv>

namespace berth::core {
namespace {

struct Origin {
  std::string scheme;
  std::string host;  // without brackets
  std::optional<std::uint16_t> port;
};

std::string_view without_brackets(std::string_view host) {
  const bool has = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  return has ? host.substr(1, host.size() - 2) : host;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && stop == end ? std::optional{port} : std::nullopt;
}

bool is_host(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return c > 0x20 && c != 0x7f &&
           !std::string_view{"\"#/<>?@[\\]^`{|}"}.contains(static_cast<char>(c));
  });
}

std::optional<Origin> parse_origin(std::string_view url) {
  url = trimmed(url);
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  Origin out{.scheme = lower(url.substr(0, colon)), .host = {}, .port = {}};
  if (out.scheme != "http" && out.scheme != "https") return std::nullopt;
  std::string_view authority = url.substr(colon + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    authority.remove_prefix(at + 1);  // credentials are not part of an origin
  }
  const std::size_t bracket = authority.find(']');
  const std::size_t port_at = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (port_at != std::string_view::npos && port_at + 1 < authority.size()) {
    out.port = parse_port(authority.substr(port_at + 1));
    if (!out.port) return std::nullopt;
  }
  out.host = lower(without_brackets(authority.substr(0, port_at)));
  if (!is_host(out.host)) return std::nullopt;
  return out;
}

std::string origin_text(const Origin& origin) {
  std::string out = origin.scheme + "://";
  out += origin.host.contains(':') ? "[" + origin.host + "]" : origin.host;
  const std::uint16_t implied = origin.scheme == "https" ? 443 : 80;
  if (origin.port && *origin.port != implied) out += ":" + std::to_string(*origin.port);
  return out;
}

std::string url_of(std::string_view scheme, std::string_view host, std::uint16_t port) {
  return origin_text({std::string{scheme}, lower(without_brackets(trimmed(host))), port});
}

std::optional<Origin> public_origin(const ApiUrlFacts& facts) {
  return facts.public_base_url ? parse_origin(*facts.public_base_url) : std::nullopt;
}

bool names_a_host(std::string_view text) {
  return is_host(without_brackets(trimmed(text)));
}

}  // namespace

std::optional<std::string> origin_of(std::string_view url) {
  const auto origin = parse_origin(url);
  return origin ? std::optional{origin_text(*origin)} : std::nullopt;
}

bool is_loopback_host(std::string_view host) {
  const std::string name = lower(without_brackets(host));
  return name == "127.0.0.1" || name == "localhost" || name == "::1";
}

bool is_wildcard_host(std::string_view host) {
  const std::string_view name = without_brackets(host);
  return name == "0.0.0.0" || name == "::";
}

bool is_link_local_host(std::string_view host) {
  const std::string name = lower(without_brackets(host));
  if (name.starts_with("169.254.")) return true;
  // fe80::/10 covers first groups fe80 to febf.
  return name.size() > 4 && name.starts_with("fe") && name[4] == ':' &&
         std::string_view{"89ab"}.contains(name[2]);
}

std::string primary_api_url(const ApiUrlFacts& facts) {
  if (const auto origin = public_origin(facts)) return origin_text(*origin);
  if (is_loopback_host(facts.bind_host)) return url_of("http", facts.bind_host, facts.port);
  const auto allowed = std::ranges::find_if(facts.allowed_hostnames, names_a_host);
  if (allowed != facts.allowed_hostnames.end()) return url_of("http", *allowed, facts.port);
  const bool bound = names_a_host(facts.bind_host) && !is_wildcard_host(facts.bind_host);
  return url_of("http", bound ? facts.bind_host : "localhost", facts.port);
}

std::vector<std::string> candidate_api_urls(const ApiUrlFacts& facts) {
  const auto origin = public_origin(facts);
  const std::string scheme = origin ? origin->scheme : "http";
  std::vector<std::string> out;
  const auto add = [&](std::string url) {
    if (std::ranges::find(out, url) == out.end()) out.push_back(std::move(url));
  };
  const auto add_host = [&](std::string_view host) {
    if (names_a_host(host)) add(url_of(scheme, host, facts.port));
  };

  if (const auto preferred = origin_of(facts.preferred_url.value_or(""))) add(*preferred);
  if (origin) add(origin_text(*origin));
  for (const std::string& hostname : facts.allowed_hostnames) add_host(hostname);
  if (!is_wildcard_host(facts.bind_host)) add_host(facts.bind_host);
  if (origin && is_loopback_host(origin->host)) add_host("host.docker.internal");
  for (const bool wants_ipv6 : {false, true}) {
    for (const auto& [address, is_internal] : facts.interfaces) {
      const bool is_reachable = !is_internal && !is_loopback_host(address) &&
                                !is_wildcard_host(address) && !is_link_local_host(address);
      if (is_reachable && address.contains(':') == wants_ipv6) add_host(address);
    }
  }
  if (out.empty()) out.push_back(primary_api_url(facts));
  return out;
}

}  // namespace berth::core
