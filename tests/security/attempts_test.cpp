#include "security/expectations.hpp"
#include "security/host_bait.hpp"
#include "security/place.hpp"
#include "security/remains.hpp"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

namespace berth::security_test {

namespace {

using keeper::sandbox::Identity;

// The sandboxes for the attempts, each created for its first attempt.
struct Grounds {
  HostileProgram hostile;
  HostBait bait{hostile.path()};
  std::map<std::string, std::unique_ptr<Sandbox>> sandboxes;
};

class SandboxedAttempt : public testing::TestWithParam<std::tuple<Place, Expectation>> {
 protected:
  static void SetUpTestSuite() { grounds_ = std::make_unique<Grounds>(); }
  static void TearDownTestSuite() { grounds_.reset(); }

  static Result<Sandbox*> sandbox_of(const Place& place) {
    std::unique_ptr<Sandbox>& found = grounds_->sandboxes[name_of(place)];
    if (!found) {
      BERTH_TRY(found, Sandbox::make({.place = place,
                                      .plan = plan_of(place, grounds_->hostile.path()),
                                      .environment = {grounds_->bait.secret()}}));
    }
    return found.get();
  }
  // The next attempt gets a new sandbox when one no longer answers.
  static void give_up(const Place& place) { grounds_->sandboxes.erase(name_of(place)); }
  static const HostBait& bait() { return grounds_->bait; }

 private:
  static inline std::unique_ptr<Grounds> grounds_;
};

// Why the limit that the attempt tests is missing; empty when it is in force.
std::string reason_without(const keeper::Confined& isolation, std::string_view feature) {
  const auto is_it = [&](const keeper::Missing& missing) {
    return !feature.empty() && missing.feature.contains(feature);
  };
  const auto found = std::ranges::find_if(isolation.missing, is_it);
  return found != isolation.missing.end() ? found->reason : std::string{};
}

const MinimalDifference* difference_of(const Place& place, const Expectation& expectation) {
  if (!place.is_minimal()) return nullptr;
  const auto found =
      std::ranges::find(minimal_differences(), expectation.attempt, &MinimalDifference::attempt);
  return found != minimal_differences().end() ? &*found : nullptr;
}

TEST_P(SandboxedAttempt, EndsAsItShould) {
  const auto& [place, expectation] = GetParam();
  if (const std::string reason = reason_against(place); !reason.empty()) GTEST_SKIP() << reason;
  const auto sandbox = sandbox_of(place);
  if (!sandbox && sandbox.error().code == Errc::sandbox_unavailable) {
    GTEST_SKIP() << "this place cannot be made here: " << sandbox.error().message;
  }
  ASSERT_TRUE(sandbox) << sandbox.error().message << " " << sandbox.error().remedy;
  const std::string missing = reason_without((*sandbox)->isolation(), expectation.needs);
  if (!missing.empty()) GTEST_SKIP() << missing;

  std::vector<std::string> words{std::string{expectation.attempt}};
  std::ranges::copy(bait().arguments(), std::back_inserter(words));
  keeper::Exec exec = (*sandbox)->hostile(std::move(words));
  if (expectation.shown == Shown::with_terminal) {
    exec.rows = 24;
    exec.columns = 80;
  }
  const auto deed = (*sandbox)->run(exec);
  if (!deed) give_up(place);
  ASSERT_TRUE(deed) << deed.error().message;
  RecordProperty("why", std::string{expectation.why});
  RecordProperty("verdict", deed->verdict());
  std::string_view expected = expectation.expected;
  if (const MinimalDifference* other = difference_of(place, expectation)) {
    expected = other->expected;
    EXPECT_TRUE(other->told.empty() ||
                !reason_without((*sandbox)->isolation(), other->told).empty())
        << other->told << " is not told";
  }
  EXPECT_TRUE(agrees(deed->verdict(), expected))
      << deed->verdict() << "\nexpected: " << expected << ", for " << expectation.why;
  EXPECT_EQ(deed->ended.left_behind, 0U);
  // A process's arguments are separated by zeros.
  EXPECT_TRUE(processes_with(std::string{"daemon"} + '\0' + bait().marker()).empty());
}

std::string name_of_case(const testing::TestParamInfo<SandboxedAttempt::ParamType>& info) {
  const auto& [place, expectation] = info.param;
  return name_of(place) + "__" + std::string{expectation.attempt};
}

constexpr Place places[] = {{Starter::root, Identity::user},
                            {Starter::root, Identity::user, UserNamespaces::forbidden},
                            {Starter::ordinary, Identity::user, UserNamespaces::forbidden},
                            {Starter::root, Identity::root},
                            {Starter::ordinary, Identity::user},
                            {Starter::ordinary, Identity::root}};

INSTANTIATE_TEST_SUITE_P(Every, SandboxedAttempt,
                         testing::Combine(testing::ValuesIn(places),
                                          testing::ValuesIn(expectations().begin(),
                                                            expectations().end())),
                         name_of_case);

}  // namespace

}  // namespace berth::security_test
