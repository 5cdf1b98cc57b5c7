#include "app/reachability.hpp"

#include "base/json/json.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace berth::app {
namespace {

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* raw = nullptr;
  if (address.sa_family == AF_INET) {
    raw = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  } else if (address.sa_family == AF_INET6) {
    raw = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  if (raw == nullptr) return {};
  if (::inet_ntop(address.sa_family, raw, text.data(), text.size()) == nullptr) return {};
  return text.data();
}

std::vector<core::InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner{first, ::freeifaddrs};
  std::vector<core::InterfaceAddress> out;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    std::string text = text_of(*at->ifa_addr);
    if (!text.empty()) out.push_back({std::move(text), (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return out;
}

}  // namespace

core::ApiUrlFacts api_url_facts(const cli::Settings& settings, const std::string& host,
                                std::uint16_t port) {
  return {.public_base_url = settings.public_url,
          .allowed_hostnames = settings.allowed_hosts,
          .bind_host = host,
          .port = port,
          .interfaces = interface_addresses()};
}

Result<std::vector<std::string>> api_candidates(const core::ApiUrlFacts& facts) {
  for (const char* name :
       {"BERTH_RUNTIME_API_CANDIDATES_JSON", "PAPERCLIP_RUNTIME_API_CANDIDATES_JSON"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    const auto listed = decode_text<std::vector<std::string>>(text);
    std::vector<std::string> origins;
    for (const std::string& url : listed.value_or(std::vector<std::string>{})) {
      if (auto origin = core::origin_of(url)) origins.push_back(*std::move(origin));
    }
    if (!origins.empty()) return origins;
    return fail(Errc::config_invalid, std::string{name} + " is not a JSON list of http URLs",
                "set it to a list such as [\"http://berth.example:3100\"], or unset it");
  }
  return core::candidate_api_urls(facts);
}

}  // namespace berth::app
