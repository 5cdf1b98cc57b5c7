#include "base/log.hpp"

#include "base/json/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace berth::log {

struct CraneTag {
  static constexpr auto noun = "crane";
};

namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  void TearDown() override { configure(Level::info, Format::text); }

  static std::string written_by(const std::function<void()>& work) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
  }
  static bj::object json_of(const std::string& line) {
    const auto value = parse_json(line);
    EXPECT_TRUE(value) << line;
    return value ? value->as_object() : bj::object{};
  }
};

// What an attacker would put into a name that is logged.
constexpr std::string_view forgery =
    "x\"\n2026-01-01T00:00:00.000Z info auth.granted user=\"root\"\r\t{} %v \x1b[2J";

TEST_F(LogTest, ATextLineHasTimeLevelEventAndFields) {
  configure(Level::info, Format::text);
  EXPECT_THAT(
      written_by([] { info("run.started", {{"run", "r1"}, {"attempt", 2}, {"retry", false}}); }),
      MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z info run.started "
                   "run=\"r1\" attempt=2 retry=false\n"));
}

TEST_F(LogTest, AJsonLineIsOneObject) {
  configure(Level::info, Format::json);
  SeededRandom random{1};
  const auto id = Id<CraneTag>::make(random, Time{1});
  const bj::object line = json_of(written_by([&] {
    error("run.failed", {{"run", id}, {"code", Errc::timed_out}, {"bytes", std::uint64_t{7}}});
  }));
  EXPECT_EQ(line.at("level"), "error");
  EXPECT_EQ(line.at("event"), "run.failed");
  EXPECT_EQ(line.at("run"), bj::string(id.str()));
  EXPECT_EQ(line.at("code"), "timed_out");
  EXPECT_EQ(line.at("bytes"), 7);
  EXPECT_TRUE(parse_iso8601(line.at("ts").as_string()));
}

TEST_F(LogTest, AValueCannotForgeALine) {
  for (const Format format : {Format::text, Format::json}) {
    configure(Level::info, format);
    const std::string out = written_by([] { info("name.given", {{"name", forgery}}); });
    EXPECT_EQ(std::ranges::count(out, '\n'), 1) << out;
    EXPECT_TRUE(out.ends_with('\n'));
    for (const char c : out.substr(0, out.size() - 1)) EXPECT_GE(static_cast<unsigned char>(c), 32);
    EXPECT_THAT(out, HasSubstr(R"(x\"\n2026)"));
    EXPECT_THAT(out, HasSubstr("{} %v")) << "a value is no format";
  }
}

TEST_F(LogTest, AValueComesBackFromAJsonLineAsItWas) {
  configure(Level::info, Format::json);
  const bj::object line = json_of(written_by([] { info("name.given", {{"name", forgery}}); }));
  EXPECT_EQ(line.at("name"), bj::string(forgery));
  EXPECT_EQ(line.size(), 4U);
}

TEST_F(LogTest, BytesThatAreNoTextDoNotBreakTheLine) {
  configure(Level::info, Format::json);
  const bj::object line = json_of(written_by([] { info("read", {{"path", "/tmp/\xff\xfe"}}); }));
  EXPECT_EQ(line.at("path"), "/tmp/??");
}

TEST_F(LogTest, WritesTheLevelsFromTheLowestUp) {
  constexpr std::string_view names[] = {"debug", "info", "warn", "error"};
  for (const Level lowest : {Level::debug, Level::info, Level::warn, Level::error, Level::off}) {
    configure(lowest, Format::text);
    const std::string out = written_by([] {
      debug("a");
      info("b");
      warn("c");
      error("d");
    });
    for (int level = 0; level < 4; ++level) {
      const std::string mark = " " + std::string{names[level]} + " " + "abcd"[level];
      EXPECT_EQ(out.contains(mark), level >= static_cast<int>(lowest)) << mark << "\n" << out;
      EXPECT_EQ(enabled(static_cast<Level>(level)), level >= static_cast<int>(lowest));
    }
  }
}

}  // namespace
}  // namespace berth::log
