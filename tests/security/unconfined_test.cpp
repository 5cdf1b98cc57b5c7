#include "security/unconfined.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "security/host_bait.hpp"
#include "security/place.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace berth::security_test {

namespace {

// An attempt that fails everywhere proves nothing about a sandbox.
class UnconfinedAttempt : public testing::TestWithParam<Expectation> {
 protected:
  // Processes that an attempt leaves become children of the test.
  void SetUp() override { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  // Ends everything but the bait, and returns whether there was anything.
  static bool ends_daemon() {
    const auto is_left = [](pid_t pid) {
      const auto words = read_file("/proc/" + std::to_string(pid) + "/cmdline", 4096);
      return words && words->contains("daemon");
    };
    const auto children = keeper::descendants_of(::getpid());
    const auto daemon = std::ranges::find_if(children, is_left);
    if (daemon == children.end()) return false;
    ::kill(*daemon, SIGKILL);
    ::waitpid(*daemon, nullptr, 0);
    return true;
  }
};

TEST_P(UnconfinedAttempt, Succeeds) {
  const Expectation& expectation = GetParam();
  if (::geteuid() != 0) GTEST_SKIP() << "only root can do everything";

  const HostileProgram hostile;
  const HostBait bait{hostile.path()};
  std::vector<std::string> words{std::string{expectation.attempt}};
  std::ranges::copy(bait.arguments(), std::back_inserter(words));
  const std::string verdict =
      run_unconfined(hostile.path(), expectation.shown, words, bait.secret());
  if (expectation.attempt == "daemon_survives") {
    EXPECT_TRUE(eventually(ends_daemon)) << "the daemon did not survive";
    return;
  }
  if (!expectation.cannot_be_shown.empty() && verdict == expectation.cannot_be_shown) {
    GTEST_SKIP() << "this machine refuses it to root too: " << verdict;
  }
  EXPECT_TRUE(verdict.starts_with("OPEN ")) << verdict;
}

std::string name_of_attempt(const testing::TestParamInfo<Expectation>& info) {
  return std::string{info.param.attempt};
}

std::vector<Expectation> shown_somewhere() {
  std::vector<Expectation> shown;
  std::ranges::copy_if(expectations(), std::back_inserter(shown),
                       [](const Expectation& one) { return one.shown != Shown::nowhere; });
  return shown;
}

INSTANTIATE_TEST_SUITE_P(Every, UnconfinedAttempt, testing::ValuesIn(shown_somewhere()),
                         name_of_attempt);

TEST(Expectations, CoverEveryAttemptOfTheHostileProgram) {
  const HostileProgram hostile;
  std::string known;
  for (const Expectation& expectation : expectations()) {
    known += std::string{expectation.attempt} + "\n";
  }
  FILE* list = ::popen((hostile.path() + " list | sort").c_str(), "re");
  ASSERT_NE(list, nullptr);
  std::string listed(65536, '\0');
  listed.resize(std::fread(listed.data(), 1, listed.size(), list));
  ::pclose(list);
  std::vector<std::string> names;
  std::istringstream lines{known};
  for (std::string line; std::getline(lines, line);) names.push_back(line + "\n");
  std::ranges::sort(names);
  std::string sorted;
  for (const std::string& name : names) sorted += name;
  EXPECT_EQ(listed, sorted);
}

TEST(Expectations, AreMetByTheWholeFirstWordsOnly) {
  EXPECT_TRUE(agrees("denied EPERM", "denied EPERM or limited"));
  EXPECT_TRUE(agrees("limited 3 files", "denied EPERM or limited"));
  EXPECT_FALSE(agrees("denied EPERMX", "denied EPERM"));
  EXPECT_FALSE(agrees("OPEN limited", "denied EPERM or limited"));
  EXPECT_FALSE(agrees("", "denied EPERM"));
}

}  // namespace

}  // namespace berth::security_test
