#include "base/assert.hpp"
#include "egress/policy.hpp"

#include <cstddef>
#include <cstdint>

// The first line is a policy in JSON; each further line is a target and an address.
namespace berth::egress {
namespace {

void check_target(const Policy& policy, std::string_view line) {
  const std::size_t space = line.find(' ');
  const Result<Target> target = parse_target(line.substr(0, space), 443);
  if (!target) {
    BERTH_ASSERT(target.error().code == Errc::validation_failed);
    return;
  }
  // Normalisation is idempotent.
  const Result<Target> again = parse_target(target->str(), std::nullopt);
  BERTH_ASSERT(again.has_value() && *again == *target);
  const Decision before = policy.decide(*target);
  BERTH_ASSERT(before.allowed == before.remedy.empty());
  BERTH_ASSERT(!before.rule.empty() && !before.reason.empty());
  if (space == std::string_view::npos) return;
  const auto address = Address::parse(line.substr(space + 1));
  if (!address) return;
  BERTH_ASSERT(Address::parse(address->str()) == address);
  const Decision after = policy.decide(*target, *address);
  // A look-up can only restrict what the name rule allowed.
  BERTH_ASSERT(!after.allowed || before.allowed || target->address);
  if (after.allowed && address->str() == "169.254.169.254") {
    BERTH_ASSERT(after.rule.contains("169.254.169.254"));
  }
}

void check(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const Result<bj::value> json = parse_json(text.substr(0, end));
  Result<Policy> policy = json ? Policy::decode(*json) : Policy{};
  if (!policy) {
    BERTH_ASSERT(policy.error().code == Errc::validation_failed && !policy.error().issues.empty());
    policy = Policy{};
  }
  text.remove_prefix(std::min(end + 1, text.size()));
  while (!text.empty()) {
    const std::size_t line = std::min(text.find('\n'), text.size());
    check_target(*policy, text.substr(0, line));
    text.remove_prefix(std::min(line + 1, text.size()));
  }
}

}  // namespace
}  // namespace berth::egress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  berth::egress::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
