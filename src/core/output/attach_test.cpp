#include "core/output/attach.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace berth::core {
namespace {

using namespace std::string_view_literals;

TEST(OutputFrame, IsTheStreamThePlaceAndTheBytes) {
  const std::string frame = to_frame(
      {.stream = OutputStream::stderr_, .next_offset = 0x0102030405060708, .bytes = "a\0b"sv});
  EXPECT_EQ(frame,
            "\2\1\2\3\4\5\6\7\x08"
            "a\0b"sv);
}

TEST(OutputFrame, ComesBackAsItWasForEveryPlace) {
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{255}, std::int64_t{1} << 40,
                                   std::numeric_limits<std::int64_t>::max()}) {
    for (const OutputStream stream : all<OutputStream>()) {
      const std::string frame = to_frame({stream, place, "\xff\0x"sv});
      const OutputFrame back = parse_output_frame(frame).value();
      EXPECT_EQ(back.stream, stream);
      EXPECT_EQ(back.next_offset, place);
      EXPECT_EQ(back.bytes, "\xff\0x"sv);
    }
  }
}

TEST(OutputFrame, WhatIsTooShortOrOfNoStreamIsRefused) {
  EXPECT_FALSE(parse_output_frame(""));
  EXPECT_FALSE(parse_output_frame("\1\0\0\0\0\0\0\0"sv));
  EXPECT_FALSE(parse_output_frame("\3\0\0\0\0\0\0\0\0x"sv));
  EXPECT_TRUE(parse_output_frame("\1\0\0\0\0\0\0\0\0"sv));
}

TEST(AttachRequest, EveryKindSurvivesTheWire) {
  const std::string bytes{"\0\xff\n", 3};
  const auto stdin_back = parse_attach_request(to_text(AttachStdin{bytes})).value();
  EXPECT_EQ(std::get<AttachStdin>(stdin_back).bytes, bytes);
  EXPECT_TRUE(std::holds_alternative<AttachStdinEnd>(
      parse_attach_request(to_text(AttachStdinEnd{})).value()));
  const TerminalSize size{.columns = 132, .rows = 50};
  EXPECT_EQ(std::get<TerminalSize>(parse_attach_request(to_text(size)).value()), size);
  const auto signal_back = parse_attach_request(to_text(AttachSignal{SIGINT})).value();
  EXPECT_EQ(std::get<AttachSignal>(signal_back).number, SIGINT);
  EXPECT_TRUE(
      std::holds_alternative<AttachCancel>(parse_attach_request(to_text(AttachCancel{})).value()));
}

TEST(AttachRequest, IsWrittenAsTheApiSays) {
  EXPECT_EQ(to_text(AttachStdin{"hi"}), R"({"type":"stdin","data":"aGk="})");
  EXPECT_EQ(to_text(AttachStdinEnd{}), R"({"type":"stdin_end"})");
  EXPECT_EQ(to_text(TerminalSize{.columns = 80, .rows = 24}),
            R"({"type":"resize","columns":80,"rows":24})");
  EXPECT_EQ(to_text(AttachSignal{SIGTERM}), R"({"type":"signal","name":"SIGTERM"})");
}

TEST(AttachRequest, AWrongFieldIsNamed) {
  const auto path = [](std::string_view text) {
    const auto parsed = parse_attach_request(text);
    if (parsed || parsed.error().issues.empty()) return std::string{"none"};
    return parsed.error().issues.front().path;
  };
  EXPECT_EQ(path(R"({"type":"stdin","data":"aGk"})"), "/data");
  EXPECT_EQ(path(R"({"type":"stdin"})"), "/data");
  EXPECT_EQ(path(R"({"type":"resize","columns":0,"rows":24})"), "/columns");
  EXPECT_EQ(path(R"({"type":"resize","columns":80,"rows":100000})"), "/rows");
  EXPECT_EQ(path(R"({"type":"signal","name":"INT"})"), "/name");
  EXPECT_EQ(path(R"({"type":"signal","name":"SIGNOPE"})"), "/name");
  EXPECT_EQ(path(R"({"type":"explode"})"), "/type");
  EXPECT_EQ(path(R"({})"), "/type");
  EXPECT_FALSE(parse_attach_request("[]"));
  EXPECT_FALSE(parse_attach_request("{"));
}

TEST(SignalNumber, KnowsTheNamesThatRunsEndWith) {
  EXPECT_EQ(signal_number("SIGKILL"), SIGKILL);
  EXPECT_EQ(signal_number("SIGSEGV"), SIGSEGV);
  EXPECT_EQ(signal_number("KILL"), 0);
  EXPECT_EQ(signal_number("SIG"), 0);
  EXPECT_EQ(signal_number(""), 0);
}

}  // namespace
}  // namespace berth::core
