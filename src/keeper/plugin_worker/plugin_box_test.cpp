#include "keeper/plugin_worker/plugin_box.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace berth::keeper {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  return out;
}

TEST(PluginBoxWordsTest, ReadsFromItsWordsWhatItWasMadeOf) {
  const PluginBox box{.readable = {"/opt/p", "/opt/a b"},
                      .writable = {"/var/p"},
                      .tmp_folder = "/var/p/tmp",
                      .ports = {22, 443},
                      .least = BoxLevel::strong};
  std::vector<std::string> words = words_of(box);
  std::vector<char*> pointers = pointers_to(words);
  const Result<PluginBox> read = parse_box(pointers);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->readable, box.readable);
  EXPECT_EQ(read->writable, box.writable);
  EXPECT_EQ(read->tmp_folder, box.tmp_folder);
  EXPECT_EQ(read->ports, box.ports);
  EXPECT_EQ(read->least, BoxLevel::strong);
}

TEST(PluginBoxWordsTest, RejectsOptionsThatItDoesNotKnow) {
  for (std::vector<std::string> words : {std::vector<std::string>{"box", "--read", "relative"},
                                         {"box", "--port", "0"},
                                         {"box", "--port", "70000"},
                                         {"box", "--least", "perfect"},
                                         {"box", "--open", "/"},
                                         {"box", "--read"},
                                         {"cell"}}) {
    std::vector<char*> pointers = pointers_to(words);
    EXPECT_FALSE(parse_box(pointers)) << words.back();
  }
}

class BoxChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    keeper_ = Fd{ends[0]};
    server_ = Fd{ends[1]};
  }
  Fd keeper_;
  Fd server_;
  BoxArrivals arrived_;
};

TEST_F(BoxChannelTest, BringsTheSocketsAndThenTheReport) {
  PluginSockets sockets{.names_udp = Fd{::socket(AF_INET, SOCK_DGRAM, 0)},
                        .names_tcp = {},
                        .proxy = Fd{::socket(AF_INET, SOCK_STREAM, 0)},
                        .doors = {}};
  sockets.doors.push_back({.port = 443, .listener = Fd{::socket(AF_INET, SOCK_STREAM, 0)}});
  ASSERT_EQ(send_sockets(keeper_.get(), sockets), 0);
  ASSERT_EQ(send_report(keeper_.get(), {.level = BoxLevel::weak,
                                        .features = {"seccomp"},
                                        .missing = {{"landlock", "why", "how"}},
                                        .failure = {}}),
            0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*receive_from_box(server_.get(), arrived_), BoxArrival::more);
  }
  EXPECT_EQ(*receive_from_box(server_.get(), arrived_), BoxArrival::complete);
  EXPECT_EQ(*receive_from_box(server_.get(), arrived_), BoxArrival::none);
  EXPECT_TRUE(arrived_.sockets.names_udp && arrived_.sockets.proxy);
  EXPECT_FALSE(arrived_.sockets.names_tcp);
  ASSERT_EQ(arrived_.sockets.doors.size(), 1U);
  EXPECT_EQ(arrived_.sockets.doors[0].port, 443);
  EXPECT_EQ(arrived_.report.level, BoxLevel::weak);
  EXPECT_EQ(arrived_.report.missing[0].remedy, "how");
}

TEST_F(BoxChannelTest, RejectsWhatIsNotAReport) {
  ASSERT_EQ(::send(keeper_.get(), "\x09zz", 3, 0), 3);
  EXPECT_FALSE(receive_from_box(server_.get(), arrived_));
  ASSERT_EQ(::send(keeper_.get(), "\x03\x01\x00", 3, 0), 3) << "a door without a socket";
  EXPECT_FALSE(receive_from_box(server_.get(), arrived_));
  keeper_ = Fd{};
  EXPECT_FALSE(receive_from_box(server_.get(), arrived_)) << "the keeper is gone";
}

}  // namespace
}  // namespace berth::keeper
