#include "cli/cli.hpp"

#include "base/files.hpp"

#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

namespace berth::cli {
namespace {

using testing::HasSubstr;

// `berth sandbox run` up to the point where the sandbox would be created.
class SandboxCommandTest : public testing::Test {
 protected:
  int run(const std::vector<std::string>& words) {
    out_.str("");
    err_.str("");
    request_.reset();
    const SandboxCommand keep = [this](SandboxRequest request, Console&,
                                       const Settings&) -> Result<int> {
      request_ = std::move(request);
      return 9;
    };
    return cli::run(words, console_, [](Config) { return 1; }, keep);
  }

  std::ostringstream out_;
  std::ostringstream err_;
  Console console_{.out = out_, .err = err_, .in = -1, .in_is_terminal = true};
  std::optional<SandboxRequest> request_;
};

TEST_F(SandboxCommandTest, TakesWhatStandsBehindTheDashesAsItIs) {
  EXPECT_EQ(run({"sandbox", "run", "--", "sh", "-c", "echo --json", "--net", "host"}), 9);
  ASSERT_TRUE(request_) << err_.str();
  EXPECT_EQ(request_->argv, (std::vector<std::string>{"sh", "-c", "echo --json", "--net", "host"}));
  EXPECT_EQ(request_->config, (bj::object{{"provider", "linux"}}));
  EXPECT_FALSE(request_->passes_stdin);
  EXPECT_FALSE(request_->terminal);
}

TEST_F(SandboxCommandTest, MakesAConfigOfItsFlags) {
  EXPECT_EQ(run({"sandbox",
                 "run",
                 "--image",
                 "debian",
                 "--memory",
                 "64",
                 "--cpus",
                 "0.5",
                 "--pids",
                 "20",
                 "--disk",
                 "10",
                 "--net",
                 "host",
                 "--user",
                 "root",
                 "--min-isolation",
                 "weak",
                 "--timeout",
                 "1m",
                 "--weaken",
                 "ptrace",
                 "--env",
                 "A=b=c",
                 "-C",
                 "/srv",
                 "-i",
                 "--",
                 "true"}),
            9);
  ASSERT_TRUE(request_) << err_.str();
  EXPECT_EQ(request_->config,
            parse_json(R"({"provider": "linux", "image": "debian", "network": "host",
                "user": "root", "minIsolation": "weak", "memoryMb": 64, "pids": 20, "diskMb": 10,
                "cpus": 0.5, "allow": ["ptrace"], "timeoutMs": 60000})")
                ->as_object());
  EXPECT_EQ(request_->variables, (std::vector<std::pair<std::string, std::string>>{{"A", "b=c"}}));
  EXPECT_EQ(request_->cwd, "/srv");
  EXPECT_TRUE(request_->passes_stdin);
}

TEST_F(SandboxCommandTest, PassesStdinThatIsNoTerminal) {
  console_.in_is_terminal = false;
  EXPECT_EQ(run({"sandbox", "run", "--", "cat"}), 9);
  ASSERT_TRUE(request_);
  EXPECT_TRUE(request_->passes_stdin);
}

TEST_F(SandboxCommandTest, RefusesWhatCannotBeCarriedOutBeforeAnythingIsMade) {
  EXPECT_EQ(run({"sandbox", "run"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("no command was given"));
  EXPECT_EQ(run({"sandbox", "run", "--env", "A", "--", "true"}), 2);
  console_.in_is_terminal = false;
  EXPECT_EQ(run({"sandbox", "run", "-t", "--", "true"}), 2);
  EXPECT_FALSE(request_);
}

TEST_F(SandboxCommandTest, SaysByItsFlagWhatIsWrongInTheCommandLine) {
  struct Case {
    std::vector<std::string> flags;
    std::string_view says;
  };
  const Case cases[] = {
      {{"--memory", "0"}, "--memory: must be from 16 to 16777216 MiB"},
      {{"--pids", "1"}, "--pids: must be"},
      {{"--cpus", "0"}, "--cpus: must be"},
      {{"--timeout", "25h"}, "--timeout: must be from 1 to 86400000 ms"},
      {{"--weaken", "foo"}, "--weaken: "},
      {{"--env", "A-B=x"}, "--var: 'A-B' is not the name of a variable"},
      {{"--net", "host", "--allow", "x"}, "--allow: cannot be kept"},
      {{"--net", "host", "--deny", "x"}, "--deny: cannot be kept"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> words{"sandbox", "run"};
    words.insert(words.end(), c.flags.begin(), c.flags.end());
    words.insert(words.end(), {"--", "true"});
    EXPECT_EQ(run(words), 2) << c.says;
    EXPECT_THAT(err_.str(), HasSubstr(std::string{c.says}));
    EXPECT_THAT(err_.str(), testing::Not(HasSubstr("/config")));
    EXPECT_FALSE(request_);
  }
}

TEST_F(SandboxCommandTest, TakesABindAsItIsGiven) {
  using keeper::sandbox::Access;
  struct Case {
    std::string_view text, target;
    Access access;
  };
  const Case cases[] = {
      {"/a", "/a", Access::writable},        {"/a:ro", "/a", Access::read_only},
      {"/a:rw", "/a", Access::writable},     {"/a:/b", "/b", Access::writable},
      {"/a:/b:ro", "/b", Access::read_only}, {"/a:/b:rw", "/b", Access::writable}};
  for (const Case& c : cases) {
    EXPECT_EQ(run({"sandbox", "run", "--bind", std::string{c.text}, "--", "true"}), 9) << c.text;
    ASSERT_TRUE(request_) << err_.str();
    ASSERT_EQ(request_->binds.size(), 1U);
    EXPECT_EQ(request_->binds[0].source, "/a") << c.text;
    EXPECT_EQ(request_->binds[0].target, c.target) << c.text;
    EXPECT_EQ(request_->binds[0].access, c.access) << c.text;
  }
}

TEST_F(SandboxCommandTest, ResolvesARelativeBindFromTheFolderOfTheCaller) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(run({"sandbox", "run", "--bind", ".:/work", "-v", "../x:ro", "true"}), 9) << err_.str();
  ASSERT_TRUE(request_);
  ASSERT_EQ(request_->binds.size(), 2U);
  EXPECT_EQ(request_->binds[0].source, here);
  EXPECT_EQ(request_->binds[0].target, "/work");
  EXPECT_EQ(request_->binds[1].source, (std::filesystem::path{here}.parent_path() / "x").string());
  EXPECT_EQ(request_->binds[1].target, request_->binds[1].source);
  EXPECT_EQ(request_->binds[1].access, keeper::sandbox::Access::read_only);
}

TEST_F(SandboxCommandTest, TheFirstWordThatIsNotAFlagBeginsTheCommand) {
  EXPECT_EQ(run({"sandbox", "run", "--memory", "64", "-q", "git", "log", "--", "-q"}), 9);
  ASSERT_TRUE(request_) << err_.str();
  EXPECT_EQ(request_->argv, (std::vector<std::string>{"git", "log", "--", "-q"}));
  EXPECT_EQ(run({"sandbox", "run", "--rm", "-it"}), 9) << err_.str();
  EXPECT_EQ(request_.value().argv, std::vector<std::string>{"/bin/sh"});
}

TEST_F(SandboxCommandTest, TakesVariablesFromTheCallerAndFromAFile) {
  const tests::TemporaryFolder folder;
  ASSERT_TRUE(replace_file(folder.path() + "/vars", "# mine\n\nA=1\nHERE\nB=secret:x\n", 0600));
  console_.variables["HERE"] = "yes";
  EXPECT_EQ(run({"sandbox", "run", "--env-file", folder.path() + "/vars", "--var", "HERE", "--env",
                 "A=2", "true"}),
            9)
      << err_.str();
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(request_.value().variables,
            (Pairs{{"A", "1"}, {"HERE", "yes"}, {"B", "secret:x"}, {"HERE", "yes"}, {"A", "2"}}));
  EXPECT_EQ(run({"sandbox", "run", "--var", "NOWHERE", "true"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--var NOWHERE: your own environment does not have it"));
  ASSERT_TRUE(replace_file(folder.path() + "/vars", "A=1\n1B=2\n", 0600));
  EXPECT_EQ(run({"sandbox", "run", "--env-file", folder.path() + "/vars", "true"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("vars:2: '1B' is not the name of a variable"));
}

TEST_F(SandboxCommandTest, RefusesBindsThatCannotBe) {
  EXPECT_EQ(run({"sandbox", "run", "--bind", "/here:there", "--", "true"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("the path inside is not absolute"));
  EXPECT_EQ(run({"sandbox", "run", "--bind", "/a:/there", "--bind", "/b:/there", "--", "true"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--bind '/b:/there': /a is at /there already"));
  EXPECT_EQ(run({"sandbox", "run", "--bind", "/a:/x", "--bind", "/a:/y", "--", "true"}), 9);
}

TEST_F(SandboxCommandTest, ABindThatFindsNoPlaceIsToldWhatWouldDo) {
  const SandboxCommand fails = [](SandboxRequest, Console&, const Settings&) -> Result<int> {
    return fail(Errc::sandbox_setup_failed, "bind target '/etc/passwd': Invalid argument");
  };
  EXPECT_EQ(cli::run(
                {"sandbox", "run", "--bind", "/a:/etc/passwd", "--", "true"}, console_,
                [](Config) { return 1; }, fails),
            125);
  EXPECT_THAT(err_.str(), HasSubstr("fix: give each --bind a place"));
}

TEST_F(SandboxCommandTest, ATimeLimitHasItsCodeAndASentence) {
  const SandboxCommand late = [](SandboxRequest, Console&, const Settings&) -> Result<int> {
    return fail(Errc::timed_out, "Timed out after 1000 ms", "give it more time");
  };
  EXPECT_EQ(cli::run(
                {"sandbox", "run", "-q", "--", "true"}, console_, [](Config) { return 1; }, late),
            124);
  EXPECT_THAT(err_.str(), HasSubstr("Timed out after 1000 ms"));
}

TEST_F(SandboxCommandTest, WhatIsNotThereIsNoFaultOfTheCommandLine) {
  const tests::TemporaryFolder home;
  EXPECT_EQ(run({"--home", home.path(), "sandbox", "run", "--image", "nothing"}), 125);
  EXPECT_THAT(err_.str(), HasSubstr("nothing"));
}

TEST_F(SandboxCommandTest, SpeaksUnlessItIsToldNotTo) {
  EXPECT_EQ(run({"sandbox", "run", "--", "true"}), 9);
  EXPECT_FALSE(request_.value().quiet);
  EXPECT_EQ(run({"sandbox", "run", "-q", "--", "true"}), 9);
  EXPECT_TRUE(request_.value().quiet);
}

}  // namespace
}  // namespace berth::cli
