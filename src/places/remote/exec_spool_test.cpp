#include "places/remote/exec_spool.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace berth::places::remote {
namespace {

class ExecSpoolTest : public ::testing::Test {
 protected:
  ExecSpoolTest() { EXPECT_NE(::mkdtemp(root_.data()), nullptr); }
  ~ExecSpoolTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  std::string folder() const { return root_ + "/lease/exec"; }
  ExecSpool make(std::int64_t limit = 1 << 20) {
    auto made = ExecSpool::create(folder(), Time{7}, limit);
    EXPECT_TRUE(made && made->has_value());
    return **std::move(made);
  }

 private:
  std::string root_ = (std::filesystem::temp_directory_path() / "berth-spool-XXXXXX").string();
};

TEST_F(ExecSpoolTest, ACommandIsStartedByOneOnly) {
  make();
  const auto second = ExecSpool::create(folder(), Time{8}, 1);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->has_value());
  EXPECT_EQ(ExecSpool::open(folder())->started_at(), Time{7});
  EXPECT_EQ(ExecSpool::open(folder() + "x").error().code, Errc::exec_not_found);
}

TEST_F(ExecSpoolTest, OutputIsReadBackFromTheOffsetOfAnyRecord) {
  ExecSpool spool = make();
  spool.append(OutputKind::out, "one", Time{1});
  spool.append(OutputKind::err, "two", Time{2});
  const auto reader = ExecSpool::open(folder());
  const auto all = reader->read(0);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].bytes, "one");
  EXPECT_EQ((*all)[1].kind, OutputKind::err);
  EXPECT_EQ((*all)[1].at, Time{2});
  const auto second = reader->read((*all)[0].next_offset);
  ASSERT_EQ(second->size(), 1U);
  EXPECT_EQ((*second)[0].bytes, "two");
  EXPECT_TRUE(reader->read((*all)[1].next_offset)->empty());
  EXPECT_FALSE(reader->read(5)) << "no record starts there";
}

TEST_F(ExecSpoolTest, WhatIsOverTheLimitIsCounted) {
  ExecSpool spool = make(5);
  spool.append(OutputKind::out, "12345678", Time{1});
  spool.append(OutputKind::out, "9", Time{1});
  ASSERT_TRUE(spool.finish({.ended = {.outcome = Outcome::exited, .exit_code = 3}}));
  const auto end = ExecSpool::open(folder())->end();
  ASSERT_TRUE(end && *end);
  EXPECT_EQ((*end)->ended.exit_code, 3);
  EXPECT_EQ((*end)->ended.bytes_over_limit, 4);
  EXPECT_EQ((*spool.read(0))[0].bytes, "12345");
}

TEST_F(ExecSpoolTest, AFailureIsTheEndTooAndNoEndIsNone) {
  ExecSpool spool = make();
  EXPECT_FALSE(spool.end()->has_value());
  ASSERT_TRUE(spool.finish({.failure = Error{Errc::plugin_protocol, "bad answer"}}));
  EXPECT_EQ((*spool.end())->failure->message, "bad answer");
}

}  // namespace
}  // namespace berth::places::remote
