#include "snapshots/git/git_program.hpp"

#include "snapshots/snapshots_fixture.hpp"

namespace berth::snapshots {
namespace {

using GitProgramTest = SnapshotsTest;

// A program in git's place that shows what git would see.
std::string stand_in(const std::string& home, const std::string& script) {
  std::string path = home + "/stand-in";
  std::ofstream{path} << "#!/bin/sh\n" << script << "\n";
  ::chmod(path.c_str(), 0755);
  return path;
}

TEST_F(GitProgramTest, EnvironmentComesFromNothing) {
  ::setenv("GIT_TEST_LEAK", "leaked", 1);
  const GitProgram git{stand_in(home(), "env")};
  const auto text = git.output("/some/folder", {.arguments = {"version"}});
  ::unsetenv("GIT_TEST_LEAK");
  SNAPSHOT_OK(text);
  EXPECT_FALSE(text->contains("GIT_TEST_LEAK")) << *text;
  for (const char* expected : {"GIT_CONFIG_NOSYSTEM=1\n", "GIT_CONFIG_GLOBAL=/dev/null\n",
                               "GIT_DIR=/some/folder\n", "GIT_TERMINAL_PROMPT=0\n"}) {
    EXPECT_TRUE(text->contains(expected)) << expected;
  }
}

TEST_F(GitProgramTest, DeadlineKillsTheProgramAndItsChildren) {
  const GitProgram git{stand_in(home(), "sleep 1000 & echo $! > " + home() + "/child; wait")};
  const auto done = git.run("", {.limits = {.time_max = std::chrono::milliseconds{500}}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::timed_out);
  std::ifstream in{home() + "/child"};
  pid_t child = 0;
  in >> child;
  ASSERT_GT(child, 0);
  // Its new parent may not have collected it yet: a zombie is dead.
  std::ifstream state{"/proc/" + std::to_string(child) + "/stat"};
  std::string text;
  std::getline(state, text);
  EXPECT_TRUE(text.empty() || text.contains(") Z ") || text.contains(") X ")) << text;
}

TEST_F(GitProgramTest, TooMuchOutputEndsIt) {
  const GitProgram git{stand_in(home(), "yes")};
  const auto text = git.output("", {.arguments = {"log"}}, 1000);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::git_failed);
}

TEST_F(GitProgramTest, FailureShowsTheFirstLineOfItsErrors) {
  const GitProgram git{stand_in(home(), "echo 'fatal: no such thing' >&2; exit 128")};
  const auto done = git.run("", {.arguments = {"log"}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::git_failed);
  EXPECT_TRUE(done.error().message.contains("fatal: no such thing")) << done.error().message;
}

TEST_F(GitProgramTest, MissingProgramIsUnavailable) {
  const auto done = GitProgram{home() + "/nothing"}.run("", {.arguments = {"version"}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::git_unavailable);
  const auto old = GitProgram{stand_in(home(), "echo git version 2.30.2")}.check_version();
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Errc::git_unavailable);
}

TEST_F(GitProgramTest, InputAndOutputMoveAtTheSameTime) {
  const GitProgram git{stand_in(home(), "exec cat")};
  const std::string piece(100'000, 'x');
  int left = 50;
  std::size_t received = 0;
  const auto done = git.run("", {.input = [&]() -> Result<std::string_view> {
                                   return left-- > 0 ? std::string_view{piece} : "";
                                 },
                                 .output =
                                     [&](std::string_view bytes) {
                                       received += bytes.size();
                                       return Result<>{};
                                     }});
  SNAPSHOT_OK(done);
  EXPECT_EQ(received, 50 * piece.size());
}

TEST_F(GitProgramTest, RefusesEveryTransport) {
  const auto done = repository().run({.arguments = {"fetch", "file://" + folder(), "HEAD"}});
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().message.contains("not allowed")) << done.error().message;
}

}  // namespace
}  // namespace berth::snapshots
