#include "egress/resolver.hpp"

#include "base/async/offload.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace berth::egress {
namespace {

constexpr std::size_t address_count_max = 32;

std::optional<Address> address_of(const sockaddr* from) {
  Address address;
  if (from == nullptr) return std::nullopt;
  if (from->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, from, sizeof v4);
    std::memcpy(address.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
    return address;
  }
  if (from->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, from, sizeof v6);
  address.family = Address::Family::v6;
  std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  return address;
}

Result<std::vector<Address>> ask_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return fail(Errc::server_unreachable, name + " has no address: " + ::gai_strerror(error));
  }
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const auto address = address_of(at->ai_addr);
    if (address && std::ranges::find(addresses, *address) == addresses.end())
      addresses.push_back(*address);
  }
  ::freeaddrinfo(found);
  // A truncated answer would leave addresses unchecked.
  if (addresses.empty() || addresses.size() > address_count_max) {
    return fail(Errc::server_unreachable,
                name + " has " + std::to_string(addresses.size()) + " addresses");
  }
  return addresses;
}

std::optional<std::vector<Address>> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  std::vector<Address> addresses;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (const auto address = address_of(at->ifa_addr)) addresses.push_back(*address);
  }
  ::freeifaddrs(list);
  return addresses;
}

}  // namespace

SystemResolver::SystemResolver(asio::any_io_executor executor, asio::thread_pool& pool,
                               ResolverLimits limits)
    : executor_(std::move(executor)), pool_(pool), limits_(limits), lookups_(executor_) {}

Task<std::vector<Address>> SystemResolver::resolve(std::string name) {
  const Moment now = std::chrono::steady_clock::now();
  std::shared_ptr<Answer> answer;
  if (const auto found = known_.find(name); found != known_.end() && found->second->until > now) {
    answer = found->second;
  } else {
    if (lookups_.size() >= limits_.lookups_max || !make_room(now)) {
      co_return fail(Errc::overloaded, name + " is not looked up: too many names are being asked",
                     "send the request again a little later");
    }
    answer = std::make_shared<Answer>(executor_);
    answer->arrived.expires_at(now + limits_.timeout);
    known_.insert_or_assign(name, answer);
    lookups_.start("egress.look_up", look_up(name, answer));
  }
  if (answer->until == Moment::max()) {
    co_await answer->arrived.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (answer->until == Moment::max()) {
    co_return fail(Errc::timed_out, "the look-up of " + name + " takes too long");
  }
  co_return answer->addresses;
}

Task<> SystemResolver::look_up(std::string name, std::shared_ptr<Answer> answer) {
  answer->addresses = co_await offload(pool_, [name] { return ask_system(name); });
  answer->until =
      std::chrono::steady_clock::now() + (answer->addresses ? limits_.keep : limits_.keep_failed);
  answer->arrived.cancel();
  co_return Result<>{};
}

bool SystemResolver::make_room(Moment now) {
  if (known_.size() < limits_.names_max) return true;
  std::erase_if(known_, [now](const auto& entry) { return entry.second->until <= now; });
  return known_.size() < limits_.names_max;
}

std::vector<SpecialRange> addresses_of_this_machine() {
  std::vector<SpecialRange> ranges;
  for (const Address& address : interface_addresses().value_or(std::vector<Address>{})) {
    ranges.push_back({Range{.first = address, .bits = address.bits()}, "local"});
  }
  return ranges;
}

std::vector<SpecialRange> addresses_that_are_not_public() {
  std::vector<SpecialRange> ranges = special_ranges();
  for (SpecialRange& own : addresses_of_this_machine()) ranges.push_back(std::move(own));
  return ranges;
}

bool is_this_machine(const Address& address) {
  const Address plain = address.plain();
  // Linux treats the unspecified address as its loopback.
  if (plain.family == Address::Family::v4 && (plain.bytes[0] == 127 || plain.bytes[0] == 0)) {
    return true;
  }
  if (plain == Address::parse("::") || plain == Address::parse("::1")) return true;
  const auto own = interface_addresses();
  return !own || std::ranges::find(*own, plain) != own->end();
}

}  // namespace berth::egress
