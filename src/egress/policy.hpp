#pragma once

#include "base/json/json.hpp"
#include "egress/target.hpp"

#include <span>

namespace berth::egress {

// Which decisions are logged.
BOOST_DEFINE_ENUM_CLASS(LogLevel, all, denied, none)

// `egress` as a person writes it; absent lists are empty, and an empty `allow` allows nothing.
struct Rules {
  std::optional<std::vector<std::string>> allow = {};
  std::optional<std::vector<std::string>> deny = {};
  std::optional<LogLevel> log = {};
};
BOOST_DESCRIBE_STRUCT(Rules, (), (allow, deny, log))

struct Decision {
  bool allowed = false;
  std::string rule;    // "egress.allow[2] '*.example.org'", or "default"
  std::string reason;  // one sentence that names the target
  std::string remedy;  // what to write for another decision
};

// What a sandbox may reach. A pure value: callers look up the names and addresses.
//
// Deny wins over allow, and what no rule allows is denied. A name needs a name rule; without one it
// is not even looked up: a look-up alone carries bytes to the domain's operator. A special address
// also needs a range in `allow` that lies within each special range it belongs to: 0.0.0.0/0 opens
// no private network, and 169.254.0.0/16 no metadata service.
class Policy {
 public:
  // Allows nothing.
  Policy() = default;
  // Fails validation_failed with one issue per wrong rule: "egress.allow[2] ...", at "/allow/2".
  static Result<Policy> parse(const Rules& rules,
                              std::vector<SpecialRange> special = special_ranges());
  // The same from JSON; null means a policy that allows nothing.
  static Result<Policy> decode(const bj::value& json,
                               std::vector<SpecialRange> special = special_ranges());

  LogLevel log() const { return log_; }
  // The rules in `allow` that open addresses outside the public internet, as written.
  std::vector<std::string> private_rules() const;

  // Before the port is known: denied if no port of the name can be allowed.
  Decision decide_name(std::string_view name) const;
  // Before a look-up. Final if the target is an address.
  Decision decide(const Target& target) const;
  // After the look-up, for the address that would be connected to.
  Decision decide(const Target& target, const Address& address) const;
  // For all addresses of a name: one refused address refuses them all, because a name that points
  // both outside and inside is typical of a DNS attack.
  Decision decide(const Target& target, std::span<const Address> addresses) const;

 private:
  struct Rule {
    enum class Kind { any_name, name, subdomains, range };
    Kind kind = Kind::name;
    std::string name = {};
    Range range = {};
    std::uint16_t port = 0;  // 0: 80 and 443 in `allow`, every port in `deny`
    std::string label = {};  // "egress.allow[2] '*.example.org'"

    bool fits_name(std::string_view host) const;
    bool fits_allowed_port(std::uint16_t wanted) const;
    bool fits_denied_port(std::uint16_t wanted) const { return port == 0 || port == wanted; }
  };
  static Result<Rule> parse_rule(std::string_view text);
  static std::vector<Rule> parse_list(const std::optional<std::vector<std::string>>& texts,
                                      std::string_view list, std::vector<Issue>& issues);

  const Rule* denying(const Target& target, const Address* address) const;
  const Rule* opening(const Address& address, std::uint16_t port) const;
  const SpecialRange* narrowest_special(const Address& address) const;
  Decision decide_address(const Target& target, const Address& address, const Rule* by_name) const;

  std::vector<Rule> allow_;
  std::vector<Rule> deny_;
  std::vector<SpecialRange> special_ = special_ranges();
  LogLevel log_ = LogLevel::all;
};

// Rewords a policy error for a policy that is `egress` in an environment's config.
Error in_config(Error wrong);

}  // namespace berth::egress
