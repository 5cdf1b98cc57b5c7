#include "egress/policy.hpp"

#include <algorithm>

namespace berth::egress {
namespace {

constexpr std::size_t rule_count_max = 1024;
constexpr std::size_t rule_bytes_max = 300;

constexpr std::string_view forms =
    "write a rule as example.org, *.example.org, example.org:8443, 192.0.2.0/24, 192.0.2.1:5432 or "
    "[2001:db8::/32]:443";

std::unexpected<Error> wrong_rule(std::string message) {
  return fail(Errc::validation_failed, std::move(message), std::string{forms});
}

// The rule that would allow this target.
std::string rule_for(const Target& target) {
  const bool usual = target.port == 80 || target.port == 443;
  if (!target.address) return usual ? target.host : target.str();
  std::string range = target.host + "/" + std::to_string(target.address->bits());
  if (usual) return range;
  const bool bracketed = target.address->family == Address::Family::v6;
  return (bracketed ? "[" + range + "]" : range) + ":" + std::to_string(target.port);
}

std::string rule_for(const Address& address, std::uint16_t port) {
  return rule_for(Target{.host = address.str(), .address = address, .port = port});
}

// A rule without its port; the port is 0 if none is given.
struct Split {
  std::string_view host;
  std::uint16_t port = 0;
};

Result<Split> split_port(std::string_view text) {
  std::string_view host = text;
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return wrong_rule("has an open bracket");
    host = text.substr(1, bracket - 1);
    const std::string_view rest = text.substr(bracket + 1);
    if (!rest.empty() && rest.front() != ':') return wrong_rule("goes on behind its bracket");
    if (!rest.empty()) port = rest.substr(1);
  } else if (std::ranges::count(text, ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  if (!port) return Split{.host = host};
  const auto number = parse_port(*port);
  if (!number) return wrong_rule("has a port that is not a number from 1 to 65535");
  return Split{.host = host, .port = *number};
}

}  // namespace

bool Policy::Rule::fits_name(std::string_view host) const {
  switch (kind) {
    case Kind::any_name: return true;
    case Kind::name: return host == name;
    case Kind::subdomains: return host.size() > name.size() && host.ends_with(name);
    case Kind::range: return false;
  }
  return false;
}

bool Policy::Rule::fits_allowed_port(std::uint16_t wanted) const {
  return port == 0 ? wanted == 80 || wanted == 443 : port == wanted;
}

Result<Policy::Rule> Policy::parse_rule(std::string_view text) {
  if (text.empty()) return wrong_rule("is empty");
  if (text.size() > rule_bytes_max) return wrong_rule("is too long");
  if (text.contains("://")) return wrong_rule("is a URL, a rule is only about host and port");
  if (text.contains('@')) return wrong_rule("has a user in it");
  BERTH_TRY(const Split split, split_port(text));
  Rule rule{.port = split.port};
  if (split.host == "*") {
    rule.kind = Rule::Kind::any_name;
    return rule;
  }
  if (split.host.contains('/') || split.host.contains(':') || Address::parse(split.host)) {
    rule.kind = Rule::Kind::range;
    Result<Range> range = Range::parse(split.host);
    if (!range) return wrong_rule(range.error().message);
    rule.range = *range;
    return rule;
  }
  const bool wild = split.host.starts_with("*.");
  if (split.host.substr(wild ? 2 : 0).contains('*')) {
    return wrong_rule("has a star that is not its first label");
  }
  Result<std::string> name = normalised_name(split.host.substr(wild ? 2 : 0));
  if (!name) return std::unexpected(std::move(name).error());
  if (*name == callback_name || name->ends_with("." + std::string{callback_name})) {
    return wrong_rule("is reserved: it always leads to the server's own API");
  }
  rule.kind = wild ? Rule::Kind::subdomains : Rule::Kind::name;
  rule.name = (wild ? "." : "") + *name;
  return rule;
}

std::vector<Policy::Rule> Policy::parse_list(const std::optional<std::vector<std::string>>& texts,
                                             std::string_view list, std::vector<Issue>& issues) {
  std::vector<Rule> rules;
  if (!texts) return rules;
  const std::string path = "/" + std::string{list};
  if (texts->size() > rule_count_max) {
    issues.push_back({path, "egress." + std::string{list} + " has more than " +
                                std::to_string(rule_count_max) + " rules"});
    return rules;
  }
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const std::string at = std::to_string(i);
    std::string label = "egress.";
    label.append(list).append("[").append(at).append("] ").append(in_quotes((*texts)[i]));
    Result<Rule> rule = parse_rule((*texts)[i]);
    if (rule) {
      rule->label = label;
      rules.push_back(*std::move(rule));
      continue;
    }
    std::string message = std::move(label);
    message.append(": ").append(rule.error().message);
    // The remedy that all rules share is given once, for the whole policy.
    const std::string& remedy = rule.error().remedy;
    if (!remedy.empty() && remedy != forms) message += "; " + remedy;
    issues.push_back({std::string{path}.append("/").append(at), std::move(message)});
  }
  return rules;
}

Result<Policy> Policy::parse(const Rules& rules, std::vector<SpecialRange> special) {
  Policy policy;
  std::vector<Issue> issues;
  policy.allow_ = parse_list(rules.allow, "allow", issues);
  policy.deny_ = parse_list(rules.deny, "deny", issues);
  policy.special_ = std::move(special);
  policy.log_ = rules.log.value_or(LogLevel::all);
  if (issues.empty()) return policy;
  std::string message = issues.front().message;
  if (issues.size() > 1) message += " (and " + std::to_string(issues.size() - 1) + " more)";
  return std::unexpected(
      Error{Errc::validation_failed, std::move(message), std::string{forms}, std::move(issues)});
}

Result<Policy> Policy::decode(const bj::value& json, std::vector<SpecialRange> special) {
  if (json.is_null()) return parse(Rules{}, std::move(special));
  JsonIssues issues;
  const std::optional<Rules> rules = decode_at<Rules>(json, JsonAt{}, issues);
  if (!rules || !issues.list().empty()) return std::unexpected(std::move(issues).to_error());
  return parse(*rules, std::move(special));
}

Error in_config(Error wrong) {
  wrong.code = Errc::unprocessable;
  for (Issue& issue : wrong.issues) issue.path.insert(0, "/config/egress");
  return wrong;
}

Decision Policy::decide(const Target& target) const {
  if (target.address) return decide_address(target, *target.address, nullptr);
  if (const Rule* rule = denying(target, nullptr)) {
    return {.rule = rule->label,
            .reason = target.str() + " is denied by " + rule->label,
            .remedy = "remove " + rule->label + " if the target is wanted"};
  }
  const Rule* other_port = nullptr;
  for (const Rule& rule : allow_) {
    if (!rule.fits_name(target.host)) continue;
    if (rule.fits_allowed_port(target.port)) {
      return {.allowed = true,
              .rule = rule.label,
              .reason = target.str() + " is allowed by " + rule.label,
              .remedy = {}};
    }
    other_port = &rule;
  }
  std::string reason = "no rule of egress.allow allows " + target.str();
  if (other_port != nullptr) reason += "; " + other_port->label + " is about other ports";
  return {.rule = "default",
          .reason = std::move(reason),
          .remedy = "add '" + rule_for(target) + "' to egress.allow"};
}

Decision Policy::decide_name(std::string_view name) const {
  const std::string host{name};
  for (const Rule& rule : deny_) {
    if (rule.port != 0 || !rule.fits_name(name)) continue;
    return {.rule = rule.label,
            .reason = host + " is denied by " + rule.label,
            .remedy = "remove " + rule.label + " if the target is wanted"};
  }
  for (const Rule& rule : allow_) {
    if (!rule.fits_name(name)) continue;
    return {.allowed = true,
            .rule = rule.label,
            .reason = host + " is allowed by " + rule.label,
            .remedy = {}};
  }
  return {.rule = "default",
          .reason = "no rule of egress.allow is about " + host,
          .remedy = "add '" + host + "' or '" + host + ":PORT' to egress.allow"};
}

Decision Policy::decide(const Target& target, const Address& address) const {
  if (target.address) return decide_address(target, address, nullptr);
  Decision by_name = decide(target);
  if (!by_name.allowed) return by_name;
  const auto fits = [&](const Rule& rule) { return rule.label == by_name.rule; };
  return decide_address(target, address, &*std::ranges::find_if(allow_, fits));
}

Decision Policy::decide(const Target& target, std::span<const Address> addresses) const {
  Decision last = decide(target);
  for (const Address& address : addresses) {
    last = decide(target, address);
    if (!last.allowed) return last;
  }
  return last;
}

Decision Policy::decide_address(const Target& target, const Address& address,
                                const Rule* by_name) const {
  const std::string where =
      by_name != nullptr ? target.str() + " at " + address.str() : target.str();
  if (const Rule* rule = denying(target, &address)) {
    return {.rule = rule->label,
            .reason = where + " is denied by " + rule->label,
            .remedy = "remove " + rule->label + " if the target is wanted"};
  }
  const Rule* opened = opening(address, target.port);
  const SpecialRange* special = narrowest_special(address);
  if (special != nullptr && opened == nullptr) {
    return {.rule = "special range " + special->range.str(),
            .reason = where + " is a " + special->name + " address",
            .remedy = "add '" + rule_for(address, target.port) +
                      "' to egress.allow if just this address is wanted"};
  }
  const Rule* rule = by_name != nullptr ? by_name : opened;
  if (rule == nullptr) {
    return {.rule = "default",
            .reason = "no rule of egress.allow allows " + where,
            .remedy = "add '" + rule_for(address, target.port) + "' to egress.allow"};
  }
  std::string label = rule->label;
  if (special != nullptr && opened != rule) label += " with " + opened->label;
  return {
      .allowed = true, .rule = label, .reason = where + " is allowed by " + label, .remedy = {}};
}

std::vector<std::string> Policy::private_rules() const {
  std::vector<std::string> found;
  for (const Rule& rule : allow_) {
    const bool is_private = rule.kind == Rule::Kind::range &&
                            std::ranges::any_of(special_, [&](const SpecialRange& special) {
                              return special.range.contains(rule.range);
                            });
    if (is_private) found.push_back(rule.label);
  }
  return found;
}

const Policy::Rule* Policy::denying(const Target& target, const Address* address) const {
  for (const Rule& rule : deny_) {
    if (!rule.fits_denied_port(target.port)) continue;
    const bool range = rule.kind == Rule::Kind::range;
    if (range && address != nullptr && rule.range.contains(*address)) return &rule;
    if (!range && !target.address && rule.fits_name(target.host)) return &rule;
  }
  return nullptr;
}

// The rule that opens exactly this address. For a special address, a rule with a wider range than
// the special one does not apply.
const Policy::Rule* Policy::opening(const Address& address, std::uint16_t port) const {
  const auto names = [&](const Rule& rule) {
    return std::ranges::all_of(special_, [&](const SpecialRange& special) {
      return !special.range.contains(address) || special.range.contains(rule.range);
    });
  };
  for (const Rule& rule : allow_) {
    if (rule.kind != Rule::Kind::range || !rule.fits_allowed_port(port)) continue;
    if (rule.range.contains(address) && names(rule)) return &rule;
  }
  return nullptr;
}

const SpecialRange* Policy::narrowest_special(const Address& address) const {
  const SpecialRange* narrowest = nullptr;
  for (const SpecialRange& special : special_) {
    if (!special.range.contains(address)) continue;
    if (narrowest == nullptr || special.range.bits > narrowest->range.bits) narrowest = &special;
  }
  return narrowest;
}

}  // namespace berth::egress
