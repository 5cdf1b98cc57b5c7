#include "core/allowances.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::HasSubstr;

constexpr Allowances none = {};

Openings opening(Allowance which) {
  Openings place{.environment = "Box"};
  switch (which) {
    case Allowance::local: place.local = true; break;
    case Allowance::host_network: place.host_network = true; break;
    case Allowance::private_egress: place.private_rules = {"egress.allow[0] '10.0.0.1'"}; break;
    case Allowance::private_ssh: place.private_host = "10.0.0.2"; break;
    case Allowance::weak_sandbox: place.weakening = "minIsolation: minimal"; break;
  }
  return place;
}

Allowances only(Allowance which) {
  return {which == Allowance::local, which == Allowance::host_network,
          which == Allowance::private_egress, which == Allowance::private_ssh,
          which == Allowance::weak_sandbox};
}

TEST(AllowancesTest, EachOpeningNeedsItsOwnAllowance) {
  for (const Allowance opened : all<Allowance>()) {
    for (const Allowance allowed : all<Allowance>()) {
      EXPECT_EQ(check_allowed(opening(opened), "Acme", only(allowed)).has_value(),
                opened == allowed)
          << name_of(opened) << " where " << name_of(allowed) << " is allowed";
    }
    EXPECT_TRUE(check_allowed(opening(opened), "Acme", Allowances::all()));
  }
  EXPECT_TRUE(check_allowed({.environment = "Sandbox"}, "Acme", none));
}

TEST(AllowancesTest, RefusalNamesEnvironmentCompanyAndRemedy) {
  const std::map<Allowance, std::string> words{{Allowance::local, "local"},
                                               {Allowance::host_network, "host-network"},
                                               {Allowance::private_egress, "private-egress"},
                                               {Allowance::private_ssh, "private-ssh"},
                                               {Allowance::weak_sandbox, "weak-sandbox"}};
  for (const auto& [which, word] : words) {
    const Result<> refused = check_allowed(opening(which), "Acme", none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::not_allowed_here);
    EXPECT_THAT(refused.error().message, HasSubstr("Company 'Acme' may not use environment 'Box'"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("berth company allow 'Acme' " + word));
  }
  EXPECT_THAT(check_allowed(opening(Allowance::private_egress), "Acme", none).error().message,
              HasSubstr("egress.allow[0] '10.0.0.1'"));
}

TEST(AllowancesTest, DecisionWinsOverDefaultEitherWay) {
  EXPECT_EQ(none.with({}), none);
  EXPECT_EQ(none.with({.local = true}), only(Allowance::local));
  EXPECT_EQ(Allowances::all().with({.host_network = false}),
            (Allowances{true, false, true, true, true}));
  EXPECT_THAT(Allowances::all().names(), testing::ElementsAreArray(all<Allowance>()));
  EXPECT_TRUE(none.names().empty());
}

TEST(WallsTest, LinuxSandboxesDifferByWhatWallsThemOff) {
  const auto same = [](const bj::object& one, const bj::object& other) {
    return has_same_walls(DriverKind::sandbox, one, DriverKind::sandbox, other);
  };
  const bj::object plain{{"provider", "linux"}, {"image", "host"}};
  EXPECT_TRUE(same(plain, {{"provider", "linux"}, {"image", "other"}, {"memoryMb", 512}}));
  EXPECT_TRUE(same(plain, {{"provider", "linux"}, {"network", nullptr}}));
  for (const bj::object& more :
       {bj::object{{"network", "host"}}, bj::object{{"user", "root"}},
        bj::object{{"egress", bj::object{{"allow", bj::array{"example.org"}}}}},
        bj::object{{"allow", bj::array{"ptrace"}}}, bj::object{{"minIsolation", "weak"}}}) {
    bj::object other = plain;
    for (const auto& [key, value] : more) other[key] = value;
    EXPECT_FALSE(same(plain, other)) << encode_text(other);
    EXPECT_TRUE(same(other, other));
  }
  EXPECT_FALSE(same(plain, {{"provider", "e2b"}}));
}

TEST(WallsTest, OtherPlacesAreTheSameByDriverAndWholeConfig) {
  const bj::object host{{"host", "a"}};
  EXPECT_TRUE(has_same_walls(DriverKind::ssh, host, DriverKind::ssh, host));
  EXPECT_FALSE(has_same_walls(DriverKind::ssh, host, DriverKind::ssh, {{"host", "b"}}));
  EXPECT_FALSE(has_same_walls(DriverKind::ssh, {}, DriverKind::local, {}));
  EXPECT_FALSE(has_same_walls(DriverKind::sandbox, {{"provider", "linux"}}, DriverKind::local, {}));
  const bj::object boxes{{"provider", "boxes"}, {"reuseLease", true}};
  EXPECT_TRUE(
      has_same_walls(DriverKind::sandbox, boxes, DriverKind::sandbox, {{"provider", "boxes"}}));
}

}  // namespace
}  // namespace berth::core
