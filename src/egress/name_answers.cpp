#include "egress/name_answers.hpp"

#include "base/text.hpp"

namespace berth::egress {
namespace {

// Short, because an address that is not used for long may be forgotten.
constexpr std::uint32_t ttl_seconds = 30;
constexpr std::size_t logged_name_bytes_max = 253;

bool is_or_is_below(std::string_view name, std::string_view domain) {
  if (!name.ends_with(domain)) return false;
  return name.size() == domain.size() || name[name.size() - domain.size() - 1] == '.';
}

}  // namespace

std::optional<std::string> NameAnswers::answer(std::string_view datagram) {
  const Result<DnsQuery> query = parse_dns_query(datagram);
  if (!query) return dns_rejection(datagram);
  if (query->klass != DnsQuery::class_internet) {
    return dns_response(*query, DnsCode::refused, {}, ttl_seconds);
  }
  const Result<std::string> name = normalised_name(query->name);
  if (name) return answer_name(*query, *name);
  return deny(*query, {.rule = "name", .reason = name.error().message, .remedy = {}});
}

std::string NameAnswers::answer_name(const DnsQuery& query, const std::string& name) {
  const bool asks_address = query.type == DnsQuery::type_a;
  const auto found = [&](const std::optional<Address>& address) {
    return dns_response(query, DnsCode::no_error, address, ttl_seconds);
  };
  if (is_or_is_below(name, "localhost")) {
    return found(asks_address ? Address::parse("127.0.0.1") : std::nullopt);
  }
  if (is_or_is_below(name, callback_name)) {
    return deny(query,
                {.rule = "callback", .reason = name + " is reserved for sandboxes", .remedy = {}});
  }
  const Decision decision = links_.decide(name);
  if (!decision.allowed) return deny(query, decision);
  // A name has no IPv6 address and no other record, so clients use the address that it has.
  if (!asks_address) return found(std::nullopt);
  const std::optional<Address> address = names_.address_of(name);
  if (!address) return dns_response(query, DnsCode::server_failure, {}, ttl_seconds);
  return found(address);
}

std::string NameAnswers::deny(const DnsQuery& query, const Decision& decision) {
  // Clients also ask for the IPv6 address: one log entry covers both.
  if (query.type == DnsQuery::type_a) {
    links_.note({.at = clock_.now(),
                 .method = "DNS",
                 .host = as_utf8(clipped(query.name, logged_name_bytes_max)),
                 .decision = Outcome::denied,
                 .rule = decision.rule,
                 .reason = decision.reason});
  }
  return dns_response(query, DnsCode::no_such_name, {}, ttl_seconds);
}

}  // namespace berth::egress
