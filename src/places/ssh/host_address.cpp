#include "places/ssh/host_address.hpp"

#include <algorithm>

namespace berth::places::ssh {
namespace {

bool may_reach_all(const Target& target) {
  return target.private_addresses == PrivateAddresses::reachable;
}

Task<std::vector<egress::Address>> look_up(const Target& target, egress::Resolver& resolver) {
  // A literal address is not looked up: a resolver may support fewer address families than ssh
  // does.
  if (const auto address = egress::Address::parse(target.host)) {
    co_return std::vector<egress::Address>{*address};
  }
  co_return co_await resolver.resolve(target.host);
}

}  // namespace

Error not_reached(const Target& target) {
  return {Errc::ssh_unreachable, target.name() + ": the server cannot reach this host",
          "check host and port; for a host whose address is not public, ask an instance "
          "administrator: berth company allow COMPANY private-ssh"};
}

Task<std::vector<HostAddress>> find_host(const Target& target, egress::Resolver& resolver) {
  // A zone belongs to a link-local address, and a look-up would lose it.
  if (may_reach_all(target) && target.host.contains('%')) {
    co_return std::vector<HostAddress>{{.text = target.host, .is_private = true}};
  }
  const Result<std::vector<egress::Address>> found = co_await look_up(target, resolver);
  if (!found && found.error().code == Errc::cancelled) co_return std::unexpected(found.error());
  if (!found && !may_reach_all(target)) co_return std::unexpected(not_reached(target));
  if (!found) {
    co_return fail(Errc::ssh_unreachable, target.name() + ": " + found.error().message,
                   "check the name of the host, and that this server can look it up");
  }
  const std::vector<egress::SpecialRange> ranges = egress::addresses_that_are_not_public();
  std::vector<HostAddress> out;
  for (const egress::Address& address : *found) {
    out.push_back({.text = address.str(), .is_private = egress::is_among(address, ranges)});
  }
  const bool is_refused =
      !may_reach_all(target) && std::ranges::any_of(out, &HostAddress::is_private);
  if (is_refused) co_return std::unexpected(not_reached(target));
  co_return out;
}

}  // namespace berth::places::ssh
