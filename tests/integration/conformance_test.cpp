#include "base/files.hpp"
#include "plugins/conformance/kit.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

// The kit against a worker that does one thing wrong, and against those that do nothing wrong.
namespace berth::plugins::conformance {
namespace {

using namespace std::chrono_literals;

struct Case {
  std::string fault;
  std::string check;  // the one that must find it
};

std::string summary_of(const Report& report) {
  std::string out;
  for (const CheckResult& check : report.checks) {
    if (check.verdict == Verdict::failed) out += check.check + ": " + check.finding + "\n";
  }
  return out;
}

const CheckResult* find(const Report& report, const std::string& name) {
  const auto found = std::ranges::find(report.checks, name, &CheckResult::check);
  return found == report.checks.end() ? nullptr : &*found;
}

// A plugin folder with the faulty worker in it.
class Kit : public testing::Test {
 protected:
  void SetUp() override {
    const auto worker = read_file(BERTH_FAULTY_WORKER, 1 << 20);
    ASSERT_TRUE(worker) << worker.error().message;
    ASSERT_TRUE(create_file(folder_.path() + "/worker", *worker, 0755));
    ASSERT_TRUE(create_file(folder_.path() + "/manifest.json", manifest, 0644));
  }

  Result<Report> examine_with(const std::string& fault, std::optional<std::string> only) {
    Wish wish{.folder = folder_.path(), .path = "/usr/bin:/bin", .only = std::move(only)};
    wish.patience = patience_;
    if (!fault.empty()) wish.credentials["FAULT"] = fault;
    wish.credentials["TOKEN"] = "s3cr3t-value";
    return examine(wish, [](const CheckResult&) {});
  }

  static constexpr std::string_view manifest = R"({
    "id": "test.faulty", "apiVersion": 1, "version": "1.0.0", "displayName": "Faulty",
    "description": "For tests.", "author": "Berth", "categories": ["automation"],
    "capabilities": ["environment.drivers.register"], "entrypoints": {"worker": "./worker"},
    "environmentDrivers": [{"driverKey": "faulty", "kind": "sandbox_provider",
      "displayName": "Faulty", "configSchema": {"type": "object",
        "properties": {"image": {"type": "string"}}}}]})";

  // Short, because what is looked for lasts.
  Patience patience_{.good_start = 2s, .stop = 2s, .orphans = 2s};
  tests::TemporaryFolder folder_;
};

TEST_F(Kit, PassesAWorkerThatDoesNothingWrong) {
  patience_ = {};
  const auto report = examine_with("", std::nullopt);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->conforms) << summary_of(*report);
  EXPECT_EQ(report->failed, 0) << summary_of(*report);
  EXPECT_EQ(report->score, 100);
  EXPECT_GT(report->passed, 30);
}

TEST_F(Kit, PassesOurOwnProvider) {
  const auto report = examine({.folder = BERTH_FAKE_PLUGIN_FOLDER, .path = "/usr/bin:/bin"},
                              [](const CheckResult&) {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->conforms) << summary_of(*report);
  EXPECT_EQ(report->failed, 0) << summary_of(*report);
}

class KitFinds : public Kit, public testing::WithParamInterface<Case> {};

TEST_P(KitFinds, TheFault) {
  const auto report = examine_with(GetParam().fault, GetParam().check);
  ASSERT_TRUE(report) << report.error().message;
  const CheckResult* check = find(*report, GetParam().check);
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(name_of(check->verdict), "failed") << summary_of(*report);
  EXPECT_FALSE(check->finding.empty());
  EXPECT_FALSE(check->mend.empty());
  EXPECT_EQ(report->conforms, check->weight == Weight::advised) << summary_of(*report);
  EXPECT_LT(report->score, 100);
  // Other faults that are looked for are not found.
  const auto others = std::ranges::count_if(report->checks, [&](const CheckResult& other) {
    return other.verdict == Verdict::failed && other.check != GetParam().check;
  });
  EXPECT_EQ(others, 0) << summary_of(*report);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, KitFinds,
    testing::Values(Case{"slow_start", "start.soon"}, Case{"impatient", "start.slow_host"},
                    Case{"dies_of_garbage", "wire.garbage"},
                    Case{"dies_of_wrong_types", "wire.wrong_types"},
                    Case{"drifting_config", "config.stable"}, Case{"no_reasons", "config.errors"},
                    Case{"second_sandbox", "host.repeats"}, Case{"destroys_once", "lease.end"},
                    Case{"relative_cwd", "lease.realize"}, Case{"secret_in_lease", "lease.secrets"},
                    Case{"leaks", "execute.no_leak"}, Case{"one_string", "execute.arguments"},
                    Case{"times_out_with_a_code", "execute.timeout"},
                    Case{"one_at_a_time", "execute.concurrent"}, Case{"orphans", "crash.execute"},
                    Case{"stays", "stop.shutdown"}, Case{"outlives_its_host", "stop.host_gone"}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.fault; });

TEST_F(Kit, FindsFoldersThatAreLeft) {
  const auto report = examine_with("keeps_folders", "lease.apart");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(name_of(find(*report, "lease.apart")->verdict), "failed");
  EXPECT_FALSE(report->conforms);
  const std::regex kept{"/tmp/faulty-worker-[A-Za-z0-9_-]+"};
  for (const CheckResult& check : report->checks) {
    for (std::sregex_iterator at{check.finding.begin(), check.finding.end(), kept}, end; at != end;
         ++at) {
      std::filesystem::remove_all(at->str());
    }
  }
}

TEST_F(Kit, FindsWhatIsPrintedBetweenTheMessages) {
  const auto report = examine_with("prints", "execute.streams");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(name_of(find(*report, "left.clean_stdout")->verdict), "failed");
}

TEST_F(Kit, TriesWhatAsksItsHostWithHostsThatMisbehave) {
  const auto report = examine_with("asks", "host.");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->conforms) << summary_of(*report);
  EXPECT_EQ(name_of(find(*report, "host.doubles")->verdict), "passed");
  EXPECT_EQ(name_of(find(*report, "host.silent")->verdict), "passed");
}

TEST_F(Kit, NamesTheRuleOfTheManifestThatIsBroken) {
  ASSERT_TRUE(replace_file(folder_.path() + "/manifest.json", R"({"id": "Bad Id"})", 0644));
  const auto report = examine_with("", std::nullopt);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->checks.size(), 1U);
  EXPECT_FALSE(report->conforms);
  EXPECT_NE(report->checks[0].finding.find("/id"), std::string::npos) << report->checks[0].finding;
}

TEST_F(Kit, SaysThatAWorkerDoesNotStartAndSkipsTheRest) {
  ASSERT_TRUE(replace_file(folder_.path() + "/worker", "#!/bin/sh\nexit 3\n", 0755));
  const auto report = examine_with("", std::nullopt);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(name_of(find(*report, "start.initialize")->verdict), "failed");
  EXPECT_EQ(report->failed, 1) << summary_of(*report);
  EXPECT_FALSE(report->conforms);
}

}  // namespace
}  // namespace berth::plugins::conformance
