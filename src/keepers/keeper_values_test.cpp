#include "keepers/keeper_values.hpp"

#include "keeper/protocol/output.hpp"
#include "keepers/output_records.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace berth::keepers {
namespace {

TEST(KeeperValues, ACommandIsAskedForWithAllThatItHas) {
  Command command{.exec_id = "e1", .argv = {"cat", "-n"}, .cwd = "/tmp", .grace_ms = 7};
  command.environment.emplace("B", Secret{"2"});
  command.environment.emplace("A", Secret{"one=1"});
  command.input = StdinBytes{Secret{"in"}};
  command.terminal = core::TerminalSize{.columns = 100'000, .rows = 0};
  command.timeout_ms = 9;
  command.output_bytes_max = 11;
  const ExecRequest request{command};
  const keeper::Exec& exec = request.exec();
  EXPECT_EQ(exec.exec_id, "e1");
  EXPECT_EQ(exec.argv, (std::vector<std::string>{"cat", "-n"}));
  EXPECT_EQ(exec.environment, (std::vector<std::string>{"A=one=1", "B=2"}));
  EXPECT_EQ(exec.cwd, "/tmp");
  EXPECT_EQ(exec.stdin_kind, keeper::Stdin::bytes);
  EXPECT_EQ(exec.stdin_bytes, "in");
  EXPECT_EQ(exec.columns, 65535);
  EXPECT_EQ(exec.rows, 1);
  EXPECT_EQ(exec.deadline_ms, 9U);
  EXPECT_EQ(exec.grace_ms, 7U);
  EXPECT_EQ(exec.output_bytes_max, 11U);
  EXPECT_EQ(exec.leftovers, keeper::Leftovers::kill);
}

TEST(KeeperValues, DefaultsStandOnlyWhereTheCommandSaysNothing) {
  Command command{.exec_id = "e", .argv = {"true"}, .cwd = "/"};
  command.environment.emplace("PATH", Secret{"/bin"});
  const ExecRequest request{command, {.environment = {"PATH=/usr/bin", "LANG=C=1"}}};
  EXPECT_EQ(request.exec().environment, (std::vector<std::string>{"PATH=/bin", "LANG=C=1"}));
}

TEST(KeeperValues, OfTwoLimitsOnOutputTheLowerHolds) {
  const Command command{.exec_id = "e", .argv = {"true"}, .cwd = "/", .output_bytes_max = 100};
  EXPECT_EQ((ExecRequest{command, {.output_bytes_max = 10}}.exec().output_bytes_max), 10U);
  EXPECT_EQ((ExecRequest{command, {.output_bytes_max = 1000}}.exec().output_bytes_max), 100U);
}

TEST(KeeperValues, WithoutATimeoutTheKeepersOwnDeadlineIsTheOnlyOne) {
  const ExecRequest request{{.exec_id = "e", .argv = {"true"}, .cwd = "/"}};
  EXPECT_EQ(request.exec().deadline_ms, 0U);
  EXPECT_EQ(request.exec().stdin_kind, keeper::Stdin::none);
  EXPECT_FALSE(request.exec().has_terminal());
}

TEST(KeeperValues, AnEndHasACodeOrASignalAndALostOneNeither) {
  const auto exited = ended_of({.outcome = keeper::Outcome::timed_out, .code = 9});
  EXPECT_EQ(exited->outcome, Outcome::timed_out);
  EXPECT_EQ(exited->exit_code, 9);
  EXPECT_EQ(exited->signal, std::nullopt);
  const auto killed = ended_of({.outcome = keeper::Outcome::stopped, .signal = SIGKILL});
  EXPECT_EQ(killed->outcome, Outcome::stopped);
  EXPECT_EQ(killed->exit_code, std::nullopt);
  EXPECT_EQ(killed->signal, "SIGKILL");
  const auto lost = ended_of({.outcome = keeper::Outcome::lost});
  EXPECT_EQ(lost->outcome, Outcome::lost);
  EXPECT_EQ(lost->exit_code, std::nullopt);
  EXPECT_EQ(lost->signal, std::nullopt);
}

TEST(KeeperValues, ACommandThatCouldNotStartIsAnErrorWithItsReason) {
  const auto failed = ended_of({.outcome = keeper::Outcome::failed_to_start,
                                .error_code = "command_not_found",
                                .message = "m",
                                .remedy = "r"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (Error{Errc::command_not_found, "m", "r"}));
}

TEST(KeeperValues, EverySignalHasAName) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "SIGRTMIN+3");
  EXPECT_EQ(signal_name(4000), "signal 4000");
}

std::string value_record(keeper::Stream stream, std::string_view bytes, std::int64_t time_us = 0) {
  const auto header = keeper::encode_header(
      {.size = static_cast<std::uint32_t>(bytes.size()), .stream = stream, .time_us = time_us});
  return std::string{header.data(), header.size()} + std::string{bytes};
}

TEST(OutputRecords, AreCutAtTheirBordersAndTheRestIsLeft) {
  const std::string one = value_record(keeper::Stream::out, "abc", 1'234'567);
  const std::string two = value_record(keeper::Stream::err, "d");
  const std::string three = value_record(keeper::Stream::note, "ef");
  const std::string bytes = one + two + three + "rest";
  const auto cut = cut_records(bytes, 10);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->used, bytes.size() - 4);
  ASSERT_EQ(cut->pieces.size(), 3U);
  EXPECT_EQ(cut->pieces[0].offset, 10U);
  EXPECT_EQ(cut->pieces[0].next_offset, 10 + one.size());
  EXPECT_EQ(cut->pieces[0].bytes, "abc");
  EXPECT_EQ(cut->pieces[0].at, Time{1234});
  EXPECT_EQ(cut->pieces[0].kind, OutputKind::out);
  EXPECT_EQ(cut->pieces[1].offset, 10 + one.size());
  EXPECT_EQ(cut->pieces[1].kind, OutputKind::err);
  EXPECT_EQ(cut->pieces[2].kind, OutputKind::note);
  EXPECT_EQ(cut->pieces[2].next_offset, 10 + cut->used);
}

TEST(OutputRecords, OfEveryPrefixAreThoseThatAreWhole) {
  const std::string one = value_record(keeper::Stream::out, "abc");
  const std::string bytes = one + value_record(keeper::Stream::out, "d");
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto cut = cut_records(std::string_view{bytes}.substr(0, size), 0);
    ASSERT_TRUE(cut) << size;
    const std::size_t whole = size == bytes.size() ? 2 : size >= one.size() ? 1 : 0;
    EXPECT_EQ(cut->pieces.size(), whole) << size;
  }
}

TEST(OutputRecords, ThatAreNoneAreAnErrorWithTheirOffset) {
  const auto cut =
      cut_records(value_record(keeper::Stream::out, "abc") + std::string(16, 'x'), 100);
  ASSERT_FALSE(cut);
  EXPECT_TRUE(cut.error().message.contains("119")) << cut.error().message;
}

TEST(OutputRecords, EndWhereAPowerCutLeftZeros) {
  const auto cut = cut_records(value_record(keeper::Stream::out, "abc") + std::string(50, '\0'), 0);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->pieces.size(), 1U);
}

}  // namespace
}  // namespace berth::keepers
