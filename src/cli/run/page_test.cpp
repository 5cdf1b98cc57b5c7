#include "cli/run/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

bj::value json(std::string_view text) {
  return parse_json(text).value();
}

PageLook narrow() {
  return {.columns = 49, .now = *parse_iso8601("2026-01-01T00:00:10.000Z")};
}

TEST(PhasesPicture, PutsEachBarAtItsPlaceInTheWhole) {
  const bj::value phases = json(R"([
    {"phase":"queued","startedAt":"2026-01-01T00:00:00.000Z",
     "finishedAt":"2026-01-01T00:00:01.000Z"},
    {"phase":"execute","startedAt":"2026-01-01T00:00:01.000Z",
     "finishedAt":"2026-01-01T00:00:09.000Z"},
    {"phase":"release","startedAt":"2026-01-01T00:00:09.000Z",
     "finishedAt":"2026-01-01T00:00:10.000Z"}])");
  EXPECT_EQ(phases_picture(phases.get_array(), narrow()),
            "  queued              1.0 s  ▇▇\n"
            "  execute             8.0 s    ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n"
            "  release             1.0 s                    ▇▇\n");
}

TEST(PhasesPicture, AnOpenPhaseGoesOnUntilNowAndNoneIsInvisible) {
  const bj::value phases = json(R"([
    {"phase":"queued","startedAt":"2026-01-01T00:00:00.000Z",
     "finishedAt":"2026-01-01T00:00:00.000Z"},
    {"phase":"execute","startedAt":"2026-01-01T00:00:00.000Z","finishedAt":null}])");
  const std::string picture = phases_picture(phases.get_array(), narrow());
  EXPECT_THAT(picture, HasSubstr("0 ms  ▇\n"));
  EXPECT_THAT(picture, HasSubstr("10.0 s  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n"));
  EXPECT_EQ(phases_picture({}, narrow()), "");
}

TEST(WaitingLine, HasThePositionAndTheReason) {
  EXPECT_EQ(waiting_line(json(R"({"status":"queued","queue":{"position":3,
              "reason":"environment_limit","explanation":"environment 'x' is full"}})")),
            "queued at position 3: environment 'x' is full");
  EXPECT_EQ(waiting_line(json(R"({"status":"queued"})")), "queued");
  EXPECT_EQ(waiting_line(json(R"({"status":"running"})")), "");
}

TEST(RunPage, SaysHowItEndedWhereItRanAndWhyThere) {
  const std::string page = run_page(json(R"({"id":"r1","status":"failed","exitCode":2,
      "command":{"argv":["sh","-c","it's"],"cwd":"/srv"},
      "environment":{"name":"Local","driver":"local"},
      "environmentChoice":{"explanation":"nothing else was wished for"},
      "environmentLease":{"id":"l1","status":"failed","leasePolicy":"ephemeral"},
      "server":{"name":"alpha","url":"http://10.0.0.7:3100"},
      "createdAt":"2026-01-01T00:00:00.000Z","logBytes":12})"),
                                    narrow());
  EXPECT_THAT(page, HasSubstr("run r1  failed, exit 2\n"));
  EXPECT_THAT(page, HasSubstr("sh -c 'it'\\''s'\n"));
  EXPECT_THAT(page, HasSubstr("Local (local): nothing else was wished for\n"));
  EXPECT_THAT(page, HasSubstr("l1 failed, ephemeral\n"));
  EXPECT_THAT(page, HasSubstr("alpha (http://10.0.0.7:3100)\n"));
  EXPECT_THAT(page, HasSubstr("12 bytes\n"));
  EXPECT_THAT(page, Not(HasSubstr("fix")));
}

TEST(RunPage, WhatWasNotCarriedOutHasItsCodeAndRemedy) {
  const std::string page = run_page(json(R"({"id":"r1","status":"failed",
      "error":"no such command","errorCode":"command_not_found"})"),
                                    narrow());
  EXPECT_THAT(page, HasSubstr("no such command"));
  EXPECT_THAT(page, HasSubstr("command_not_found"));
  EXPECT_THAT(page, HasSubstr("full path"));
}

TEST(RunPage, NothingInItSteersTheTerminal) {
  const std::string page = run_page(
      json(R"({"id":"r\u001b[2J","status":"queued","command":{"argv":["\u001b[31m"]}})"), narrow());
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
}

TEST(ProbePage, MarksEachStepAndShowsTheRemedyOfTheOneThatFailed) {
  const std::string page = probe_page(json(R"({"ok":false,"summary":"cannot be used","steps":[
      {"name":"connect","ok":true,"durationMs":12,"message":"reached"},
      {"name":"workspace","ok":false,"durationMs":3,"message":"no folder",
       "code":"working_directory_missing","remedy":"make it"}]})"),
                                      narrow());
  EXPECT_THAT(page, HasSubstr("ok    connect"));
  EXPECT_THAT(page, HasSubstr("12 ms  reached\n"));
  EXPECT_THAT(page, HasSubstr("FAIL  workspace"));
  EXPECT_THAT(page, HasSubstr("code: working_directory_missing\n"));
  EXPECT_THAT(page, HasSubstr("fix: make it\n"));
  EXPECT_TRUE(page.ends_with("cannot be used\n"));
}

}  // namespace
}  // namespace berth::cli
