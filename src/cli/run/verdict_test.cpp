#include "cli/run/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;

bj::value run(std::string_view text) {
  return parse_json(text).value();
}

TEST(ExitCodeOfRun, IsTheCommandsOwn) {
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"succeeded","exitCode":0})")), 0);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","exitCode":7})")), 7);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","exitCode":255})")), 255);
}

TEST(ExitCodeOfRun, OfASignalIs128AndItsNumber) {
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","exitCode":null,"signal":"SIGKILL"})")),
            137);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","signal":"SIGSEGV"})")), 139);
}

TEST(ExitCodeOfRun, SaysWhoEndedItBeforeItSaysHow) {
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"timed_out","signal":"SIGKILL"})")), 124);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"cancelled","signal":"SIGTERM"})")), 130);
}

TEST(ExitCodeOfRun, Is125WhereNothingWasCarriedOut) {
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","errorCode":"quota_exceeded"})")), 125);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"interrupted"})")), 125);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"vaporized"})")), 125);
  EXPECT_EQ(exit_code_of_run(run(R"({})")), 125);
  EXPECT_EQ(exit_code_of_run(bj::value(nullptr)), 125);
}

TEST(ExitCodeOfRun, IsThatOfAShellWhereTheCommandCannotBeStarted) {
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","errorCode":"command_not_found"})")), 127);
  EXPECT_EQ(exit_code_of_run(run(R"({"status":"failed","errorCode":"command_not_executable"})")),
            126);
}

TEST(ErrorOfRun, ACommandThatEndedByItselfNeedsNoWords) {
  EXPECT_FALSE(error_of_run(run(R"({"status":"succeeded","exitCode":0})")));
  EXPECT_FALSE(error_of_run(run(R"({"status":"failed","exitCode":1,"error":"exit 1"})")));
  EXPECT_FALSE(error_of_run(run(R"({"status":"failed","signal":"SIGKILL"})")));
}

TEST(ErrorOfRun, CarriesTheCauseAndWhatToDo) {
  const auto missing = error_of_run(
      run(R"({"id":"r1","status":"failed","error":"no 'nope'","errorCode":"command_not_found"})"));
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->code, Errc::command_not_found);
  EXPECT_EQ(missing->message, "no 'nope'");
  EXPECT_THAT(missing->remedy, HasSubstr("full path"));
  const auto lost = error_of_run(run(R"({"id":"r1","status":"interrupted"})"));
  ASSERT_TRUE(lost);
  EXPECT_THAT(lost->message, HasSubstr("interrupted"));
  EXPECT_THAT(lost->remedy, HasSubstr("berth run events r1"));
  EXPECT_EQ(error_of_run(run(R"({"status":"timed_out"})"))->code, Errc::timed_out);
  EXPECT_THAT(error_of_run(run(R"({"status":"timed_out"})"))->remedy, HasSubstr("--timeout"));
  EXPECT_EQ(error_of_run(run(R"({"status":"cancelled"})"))->code, Errc::cancelled);
}

TEST(ErrorOfRun, GivesTheRemedyThatTheRunWasGiven) {
  const auto full = error_of_run(run(R"({"id":"r1","status":"failed","errorCode":"disk_full",
      "error":"mkdir x: No space left on device. Remedy: make room"})"));
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code, Errc::disk_full);
  EXPECT_EQ(full->message, "mkdir x: No space left on device");
  EXPECT_EQ(full->remedy, "make room");
}

TEST(ErrorOfRun, TellsOfMemoryAlsoWhereTheCommandHasACodeOfItsOwn) {
  const bj::value starved = run(R"({"id":"r1","status":"failed","signal":"SIGKILL",
      "errorCode":"out_of_memory","error":"It ran out. Remedy: raise memoryMb",
      "environment":{"name":"small"}})");
  const auto error = error_of_run(starved);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::out_of_memory);
  EXPECT_EQ(error->message, "run r1 in environment 'small': It ran out");
  EXPECT_EQ(error->remedy, "raise memoryMb");
  EXPECT_EQ(exit_code_of_run(starved), 137);
}

TEST(ErrorOfRun, TellsWhichLimitOfTimeItWas) {
  const auto error = error_of_run(run(R"({"id":"r1","status":"timed_out","errorCode":"timed_out",
      "error":"Timed out after 500 ms. Remedy: raise timeoutMs in the config of the environment",
      "environment":{"name":"hasty"}})"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "run r1 in environment 'hasty': Timed out after 500 ms");
  EXPECT_EQ(error->remedy, "raise timeoutMs in the config of the environment");
}

TEST(RemarkOfRun, TellsOutputThatIsNotThere) {
  EXPECT_FALSE(remark_of_run(run(R"({"id":"r1","status":"succeeded","usageJson":{"userMs":3}})")));
  EXPECT_FALSE(remark_of_run(run(R"({"id":"r1","usageJson":null})")));
  const auto lost = remark_of_run(
      run(R"({"id":"r1","status":"succeeded","exitCode":0,"usageJson":{"bytesLost":42}})"));
  ASSERT_TRUE(lost);
  EXPECT_THAT(*lost, HasSubstr("42 bytes of output were lost"));
  EXPECT_THAT(*lost, HasSubstr("berth run events r1"));
  const auto over = remark_of_run(run(R"({"id":"r1","usageJson":{"bytesOverLimit":7}})"));
  ASSERT_TRUE(over);
  EXPECT_THAT(*over, HasSubstr("7 bytes of output are more than is kept"));
}

TEST(ExitCodeOfRun, OfASuccessWhoseOutputWasLostIs125) {
  EXPECT_EQ(
      exit_code_of_run(run(R"({"status":"succeeded","exitCode":0,"usageJson":{"bytesLost":6}})")),
      125);
  EXPECT_EQ(
      exit_code_of_run(run(R"({"status":"failed","exitCode":3,"usageJson":{"bytesLost":6}})")), 3)
      << "a command that failed has said enough";
  EXPECT_EQ(exit_code_of_run(
                run(R"({"status":"succeeded","exitCode":0,"usageJson":{"bytesOverLimit":6}})")),
            0)
      << "whoever set the limit knows it";
}

TEST(ExitCodeOfExec, OfASuccessWhoseOutputWasLostIs125) {
  const bj::value lost = run(R"({"outcome":"exited","exitCode":0,"bytesLost":6})");
  EXPECT_EQ(exit_code_of_exec(lost), 125);
  EXPECT_EQ(exit_code_of_command(lost), 0);
  EXPECT_EQ(remark_of_exec(lost),
            "6 bytes of output were lost: no space left on the disk that keeps it");
  EXPECT_EQ(exit_code_of_exec(run(R"({"outcome":"exited","exitCode":3,"bytesLost":6})")), 3);
  const bj::value whole = run(R"({"outcome":"exited","exitCode":0,"bytesLost":0})");
  EXPECT_EQ(exit_code_of_exec(whole), 0);
  EXPECT_EQ(remark_of_exec(whole), std::nullopt);
  EXPECT_EQ(remark_of_exec(run(R"({"outcome":"exited","exitCode":0})")), std::nullopt)
      << "an older server does not count";
}

}  // namespace
}  // namespace berth::cli
