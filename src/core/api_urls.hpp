#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The addresses at which a process elsewhere may reach this server.
namespace berth::core {

// A network interface address, as the operating system lists it.
struct InterfaceAddress {
  std::string address;  // "192.168.1.7", "fd00::7"
  bool is_internal = false;
};

struct ApiUrlFacts {
  std::optional<std::string> public_base_url = {};
  std::vector<std::string> allowed_hostnames = {};
  std::string bind_host = {};
  std::uint16_t port = 3100;
  std::vector<InterfaceAddress> interfaces = {};
  std::optional<std::string> preferred_url = {};
};

// The origin "https://berth.example:8443" for "https://berth.example:8443/app?x": lower case,
// without the scheme's default port, IPv6 in brackets. Empty when `url` is not an http or https
// URL.
std::optional<std::string> origin_of(std::string_view url);

bool is_loopback_host(std::string_view host);
bool is_wildcard_host(std::string_view host);
bool is_link_local_host(std::string_view host);

// The address to print and to give to local processes.
std::string primary_api_url(const ApiUrlFacts& facts);
// All addresses worth trying from elsewhere, best first, each origin once; never empty.
std::vector<std::string> candidate_api_urls(const ApiUrlFacts& facts);

}  // namespace berth::core
