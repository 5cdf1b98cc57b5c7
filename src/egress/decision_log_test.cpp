#include "egress/decision_log.hpp"

#include "base/files.hpp"
#include "egress/meter.hpp"
#include "support/full_disk.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

LogEntry entry(std::string host, Outcome decision = Outcome::denied) {
  LogEntry made;
  made.host = std::move(host);
  made.decision = decision;
  return made;
}

std::size_t lines_of(const std::string& path) {
  const std::string text = *read_file(path, 1UL << 20U);
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(EgressLog, KeepsTheNewestInMemoryAndTheOldestInTheFile) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("egress.jsonl");
  DecisionLog log{path, {.entries_max = 3, .file_bytes_max = 1000}};
  for (int i = 0; i < 100; ++i) log.add(entry("host" + std::to_string(i)), LogLevel::all);
  log.flush();
  const auto newest = log.newest(10);
  ASSERT_EQ(newest.size(), 3U);
  EXPECT_EQ(newest.front().host, "host97");
  EXPECT_EQ(newest.back().host, "host99");
  const std::string text = *read_file(path, 1UL << 20U);
  EXPECT_LE(text.size(), 1000U);
  EXPECT_TRUE(text.contains("\"host0\""));
  EXPECT_TRUE(text.ends_with("{\"full\":true}\n"));
  EXPECT_EQ(lines_of(path) - 1 + log.not_written(), 100U);
}

TEST(EgressLog, GoesOnInTheFileOfTheSameLease) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("egress.jsonl");
  for (int i = 0; i < 2; ++i) {
    DecisionLog log{path};
    log.add(entry("a.test"), LogLevel::all);
    log.flush();
  }
  EXPECT_EQ(lines_of(path), 2U);
}

TEST(EgressLog, WritesWhatItsLevelAsksFor) {
  DecisionLog log;
  log.add(entry("a", Outcome::allowed), LogLevel::denied);
  log.add(entry("b", Outcome::denied), LogLevel::denied);
  log.add(entry("c", Outcome::cut), LogLevel::denied);
  log.add(entry("d", Outcome::denied), LogLevel::none);
  log.add(entry("e", Outcome::allowed), LogLevel::all);
  std::string hosts;
  for (const LogEntry& kept : log.newest(10)) hosts += kept.host;
  EXPECT_EQ(hosts, "bce");
}

TEST(EgressLog, GoesOnInMemoryWhenTheDiskIsFull) {
  const tests::TemporaryFolder folder;
  DecisionLog log{folder.file("egress.jsonl")};
  {
    const tests::FullDisk full;
    log.add(entry("a.test"), LogLevel::all);
    log.flush();
    log.add(entry("b.test"), LogLevel::all);
  }
  EXPECT_EQ(log.newest(10).size(), 2U);
  EXPECT_EQ(log.not_written(), 2U);
  DecisionLog nowhere{folder.file("missing/egress.jsonl")};
  nowhere.add(entry("a.test"), LogLevel::all);
  EXPECT_EQ(nowhere.newest(10).size(), 1U);
}

TEST(EgressMeter, LetsBytesThroughAtItsRate) {
  Meter meter{1000};
  const Meter::Moment start{std::chrono::hours{1}};
  EXPECT_EQ(meter.spend(100, start).count(), 0);  // what may be moved in a burst
  EXPECT_EQ(meter.spend(1000, start), std::chrono::seconds{1});
  EXPECT_EQ(meter.spend(500, start + std::chrono::seconds{1}), std::chrono::milliseconds{500});
  EXPECT_EQ(Meter{0}.spend(1UL << 40U, start).count(), 0);
}

}  // namespace
}  // namespace berth::egress
