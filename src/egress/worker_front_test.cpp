#include "egress/worker_front.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

constexpr std::uint16_t ports[] = {22, 443};

bool reaches(const Policy& policy, std::string_view to, std::string_view address) {
  const Result<Target> target = parse_target(to, std::nullopt);
  EXPECT_TRUE(target) << to;
  return policy.decide(*target, *Address::parse(address)).allowed;
}

TEST(EgressWorkerPolicy, ReachesThePublicInternetOnItsPorts) {
  const Policy policy = *worker_policy(ports);
  EXPECT_TRUE(policy.decide_name("api.example.org").allowed);
  EXPECT_TRUE(reaches(policy, "api.example.org:443", "93.184.216.34"));
  EXPECT_TRUE(reaches(policy, "api.example.org:22", "2606:2800:220:1::1"));
  EXPECT_TRUE(reaches(policy, "93.184.216.34:443", "93.184.216.34"));
  EXPECT_FALSE(reaches(policy, "api.example.org:80", "93.184.216.34"));
  EXPECT_FALSE(reaches(policy, "93.184.216.34:25", "93.184.216.34"));
}

TEST(EgressWorkerPolicy, LeavesEverySpecialRangeClosed) {
  const Policy policy = *worker_policy(ports);
  std::vector<SpecialRange> closed = special_ranges();
  for (SpecialRange& own : addresses_of_this_machine()) closed.push_back(std::move(own));
  for (const SpecialRange& special : closed) {
    const Address& address = special.range.first;
    EXPECT_FALSE(reaches(policy, "inside.test:443", address.str())) << special.range.str();
    const Target literal{.host = address.str(), .address = address, .port = 443};
    EXPECT_FALSE(policy.decide(literal).allowed) << special.range.str();
  }
  EXPECT_FALSE(reaches(policy, "metadata.test:443", "169.254.169.254"));
}

TEST(EgressWorkerPolicy, TakesRulesOfTheOperatorBesides) {
  const Policy policy = *worker_policy(
      ports, {.allow = {{"10.1.0.0/16:443"}}, .deny = {{"*.tracker.test"}}, .log = {}});
  EXPECT_TRUE(reaches(policy, "db.corp.test:443", "10.1.2.3"));
  EXPECT_FALSE(reaches(policy, "db.corp.test:443", "10.2.2.3"));
  EXPECT_FALSE(policy.decide_name("a.tracker.test").allowed);
  const auto wrong = worker_policy(ports, {.allow = {{"10.0.0.1/8"}}, .deny = {}, .log = {}});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.contains("egress.allow[0]")) << wrong.error().message;
}

}  // namespace
}  // namespace berth::egress
