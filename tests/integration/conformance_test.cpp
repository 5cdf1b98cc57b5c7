#include "base/files.hpp"
#include "plugin_kit/kit.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

// The kit against a worker with one fault, and against workers without faults.
namespace berth::plugin_kit {
namespace {

using namespace std::chrono_literals;

struct Case {
  std::string fault;
  std::string check;      // the one that must find it
  std::string only = {};  // which checks run; the same one by default
};

// One fault for each check; the manifest has its own test below.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"does_not_start", "start.initialize"},
      {"slow_start", "start.soon"},
      {"impatient", "start.slow_host"},
      {"dies_while_starting", "start.concurrent"},
      {"starts_again", "start.once"},
      {"no_probe", "start.hooks"},
      {"breaks_its_word", "start.declared"},
      {"odd_health", "start.health"},
      {"dies_of_blank_lines", "wire.pieces"},
      {"dies_of_garbage", "wire.garbage"},
      {"dies_of_strays", "wire.strays"},
      {"knows_all_methods", "wire.unknown_method"},
      {"knows_no_hooks", "wire.absent_hook"},
      {"short_lines", "wire.large_line"},
      {"dies_of_wrong_types", "wire.wrong_types"},
      {"answers_twice", "wire.every_call"},
      {"refuses_config", "config.accepted"},
      {"drifting_config", "config.stable"},
      {"no_reasons", "config.errors"},
      {"probe_fails", "config.probe"},
      {"no_lease_id", "lease.acquire"},
      {"one_sandbox", "lease.apart"},
      {"relative_cwd", "lease.realize"},
      {"destroys_once", "lease.end"},
      {"releases_once", "lease.release"},
      {"secret_in_lease", "lease.secrets"},
      {"one_stream", "execute.streams"},
      {"one_string", "execute.arguments"},
      {"cuts_input", "execute.stdin"},
      {"ignores_variables", "execute.environment"},
      {"leaks", "execute.no_leak"},
      {"cuts_output", "execute.large_output"},
      {"times_out_with_a_code", "execute.timeout"},
      {"always_succeeds", "execute.not_found"},
      {"one_at_a_time", "execute.concurrent"},
      {"live_output_differs", "execute.live"},
      {"resumes_with_an_error", "resume.lease"},
      {"forgets_modes", "sync.files"},
      {"setup_stays", "setup.session"},
      {"template_stays", "setup.template"},
      {"mangles_bytes", "duplex.bytes"},
      {"login_stays_open", "terminal.loginPtyOpen"},
      {"setup_token_stays_open", "terminal.setupTokenPtyOpen"},
      {"second_sandbox", "host.repeats"},
      {"dies_of_doubles", "host.doubles"},
      {"waits_for_ever", "host.silent"},
      {"forgets_after_crash", "crash.acquire"},
      {"forgets_after_crash", "crash.realize"},
      {"forgets_after_crash", "crash.execute"},
      {"orphans", "crash.execute"},
      {"forgets_after_crash", "crash.resume"},
      {"forgets_after_crash", "crash.release"},
      {"forgets_after_crash", "crash.destroy"},
      {"stays", "stop.shutdown"},
      {"outlives_its_host", "stop.host_gone"},
      {"keeps_folders", "left.nothing", "lease.acquire"},
      {"prints", "left.clean_stdout", "execute.streams"},
  };
  return all;
}

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

// Folders that a faulty worker has left on purpose.
void remove_what_is_named_in(const Report& report) {
  const std::regex kept{"/tmp/faulty-worker-[A-Za-z0-9_-]+"};
  for (const CheckResult& check : report.checks) {
    for (std::sregex_iterator at{check.finding.begin(), check.finding.end(), kept}, end; at != end;
         ++at) {
      std::filesystem::remove_all(at->str());
    }
  }
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
    Request request{.folder = folder_.path(), .path = "/usr/bin:/bin", .only = std::move(only)};
    request.patience = patience_;
    if (!fault.empty()) request.credentials["FAULT"] = fault;
    request.credentials["TOKEN"] = "s3cr3t-value";
    return examine(request, [](const CheckResult&) {});
  }

  static constexpr std::string_view manifest = R"({
    "id": "test.faulty", "apiVersion": 1, "version": "1.0.0", "displayName": "Faulty",
    "description": "For tests.", "author": "Berth", "categories": ["automation"],
    "capabilities": ["environment.drivers.register"], "entrypoints": {"worker": "./worker"},
    "environmentDrivers": [{"driverKey": "faulty", "kind": "sandbox_provider",
      "displayName": "Faulty", "sandboxCapabilities": {"reusableLeases": true,
        "nativeSyncIn": true, "nativeSyncOut": true, "incrementalSessionOutput": true,
        "duplexCommandStream": true}, "configSchema": {"type": "object",
        "properties": {"image": {"type": "string"}}}}]})";

  // Short, because the faults are permanent.
  Patience patience_{.good_start = 2s, .stop = 2s, .orphans = 2s, .silence = 3s};
  tests::TemporaryFolder folder_;
};

TEST_F(Kit, PassesAWorkerThatDoesNothingWrong) {
  patience_ = {};
  const auto report = examine_with("", std::nullopt);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->conforms) << summary_of(*report);
  EXPECT_EQ(report->failed, 0) << summary_of(*report);
  EXPECT_EQ(report->score, 100);
  // It sends its host no requests, so two checks have nothing to try.
  EXPECT_EQ(report->skipped, 2);
  EXPECT_EQ(report->checks.size(), check_names().size());
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
  const Case& given = GetParam();
  const auto report = examine_with(given.fault, given.only.empty() ? given.check : given.only);
  ASSERT_TRUE(report) << report.error().message;
  const CheckResult* check = find(*report, given.check);
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(name_of(check->verdict), "failed") << summary_of(*report);
  EXPECT_FALSE(check->finding.empty());
  EXPECT_FALSE(check->mend.empty());
  EXPECT_EQ(report->conforms, check->weight == Weight::advised) << summary_of(*report);
  EXPECT_LT(report->score, 100);
  // No other fault is found.
  const auto others = std::ranges::count_if(report->checks, [&](const CheckResult& other) {
    return other.verdict == Verdict::failed && other.check != given.check;
  });
  EXPECT_EQ(others, 0) << summary_of(*report);
  remove_what_is_named_in(*report);
}

INSTANTIATE_TEST_SUITE_P(Faults, KitFinds, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name = info.param.fault + "_by_" + info.param.check;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(KitChecks, EachIsShownToFindAFault) {
  std::set<std::string> shown{"manifest.valid"};  // by NamesTheRuleOfTheManifestThatIsBroken
  for (const Case& one : cases()) shown.insert(one.check);
  const auto names = check_names();
  EXPECT_EQ(shown, (std::set<std::string>{names.begin(), names.end()}));
}

TEST_F(Kit, FindsFoldersThatAreLeftByALease) {
  const auto report = examine_with("keeps_folders", "lease.apart");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(name_of(find(*report, "lease.apart")->verdict), "failed");
  EXPECT_FALSE(report->conforms);
  remove_what_is_named_in(*report);
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
}  // namespace berth::plugin_kit
