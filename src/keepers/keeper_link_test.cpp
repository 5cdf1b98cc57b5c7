#include "keepers/keeper_link.hpp"

#include "keeper/protocol/output.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace berth::keepers {
namespace {

using namespace std::chrono_literals;
using keeper::Stream;

// The keeper's side of the connection, controlled by the test.
class Peer {
 public:
  explicit Peer(Fd socket) : socket_(std::move(socket)) {
    ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  }

  // The next request that the link has sent, including hello.
  std::optional<keeper::Frame> next() {
    std::array<char, 65536> bytes{};
    const ssize_t got = ::read(socket_.get(), bytes.data(), bytes.size());
    if (got > 0) in_.feed({bytes.data(), static_cast<std::size_t>(got)});
    const auto frame = in_.next();
    EXPECT_TRUE(frame);
    return frame ? *frame : std::nullopt;
  }
  template <class Message>
  void say(std::uint64_t request, const Message& message) {
    std::string bytes;
    keeper::append_frame(bytes, request, message);
    write(bytes);
  }
  void write(std::string_view bytes) {
    ASSERT_EQ(::write(socket_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns how much of it the link has taken.
  std::size_t write_some(std::string_view bytes) {
    const ssize_t wrote = ::write(socket_.get(), bytes.data(), bytes.size());
    return wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
  }
  void close() { socket_ = Fd{}; }

 private:
  Fd socket_;
  keeper::FrameReader in_;
};

class Collected final : public OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> pieces) override {
    ++takes;
    for (const OutputPiece& piece : pieces) {
      (piece.kind == OutputKind::err ? err : out) += piece.bytes;
      next_offset = piece.next_offset;
    }
    co_return Result<>{};
  }

  std::string out;
  std::string err;
  std::uint64_t next_offset = 0;
  int takes = 0;
};

std::string record(Stream stream, std::string_view bytes) {
  const auto header = keeper::encode_header(
      {.size = static_cast<std::uint32_t>(bytes.size()), .stream = stream, .time_us = 5'000'000});
  return std::string{header.data(), header.size()} + std::string{bytes};
}

class KeeperLinkTest : public testing::Test {
 protected:
  KeeperLinkTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as in the server
    connect({});
  }
  ~KeeperLinkTest() override {
    link_.reset();
    EXPECT_TRUE(run_until([&] { return tasks_.size() == 0; })) << "the reader does not end";
  }

  void connect(std::optional<keeper::Open> open) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    peer_.emplace(Fd{pair[1]});
    link_.reset();
    link_.emplace(loop_.get_executor(), tasks_,
                  KeeperLink::Ends{.in = Fd{pair[0]}, .name = "lease 1", .open = std::move(open)});
  }

  template <class T>
  struct Pending {
    std::optional<Result<T>> result = {};
    asio::cancellation_signal cancel = {};
  };
  template <class T>
  std::shared_ptr<Pending<T>> begin(Task<T> task) {
    auto pending = std::make_shared<Pending<T>>();
    asio::co_spawn(
        loop_, std::move(task),
        asio::bind_cancellation_slot(pending->cancel.slot(),
                                     [pending](std::exception_ptr thrown, Result<T> result) {
                                       if (thrown) result = fail(Errc::cancelled, "thrown");
                                       pending->result = std::move(result);
                                     }));
    return pending;
  }
  bool run_until(const std::function<bool()>& is_so) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!is_so()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      if (loop_.stopped()) loop_.restart();
      loop_.run_one_for(10ms);
    }
    return true;
  }
  template <class T>
  Result<T> finish(const std::shared_ptr<Pending<T>>& pending) {
    EXPECT_TRUE(run_until([&] { return pending->result.has_value(); })) << "no answer";
    return pending->result.value_or(fail(Errc::bug, "no answer"));
  }
  // The id of the next request with that verb.
  std::uint64_t request(keeper::Verb verb) {
    std::optional<keeper::Frame> frame;
    EXPECT_TRUE(run_until([&] {
      frame = peer_->next();
      return frame && frame->verb == verb;
    }));
    return frame ? frame->request : 0;
  }

  asio::io_context loop_;
  TaskGroup tasks_{loop_.get_executor()};
  std::optional<Peer> peer_;
  std::optional<KeeperLink> link_;
};

TEST_F(KeeperLinkTest, AnswersFindTheirRequestsInAnyOrder) {
  const keeper::Wait first{.exec_id = "a"};
  const keeper::Wait second{.exec_id = "b"};
  const auto one = begin(link_->ask<keeper::Ended>(first));
  const auto two = begin(link_->ask<keeper::Ended>(second));
  const std::uint64_t first_id = request(keeper::Verb::wait);
  const std::uint64_t second_id = request(keeper::Verb::wait);
  peer_->say(0, keeper::Welcome{});
  peer_->say(second_id, keeper::Ended{.exec_id = "b", .code = 2});
  peer_->say(first_id, keeper::Ended{.exec_id = "a", .code = 1});
  EXPECT_EQ(finish(one)->code, 1);
  EXPECT_EQ(finish(two)->code, 2);
}

TEST_F(KeeperLinkTest, ARefusalIsTheErrorOfItsRequestAlone) {
  const auto refused = begin(link_->ask<keeper::Done>(keeper::Renew{.deadline_ms = 1}));
  const auto other = begin(link_->ask<keeper::Listing>(keeper::List{}));
  peer_->say(request(keeper::Verb::renew),
             keeper::Refused{.code = "keeper_stopping", .message = "m", .remedy = "r"});
  peer_->say(request(keeper::Verb::list), keeper::Listing{});
  const auto error = finish(refused);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error(), (Error{Errc::keeper_stopping, "m", "r"}));
  EXPECT_TRUE(finish(other));
  EXPECT_FALSE(link_->broken());
}

TEST_F(KeeperLinkTest, AnAnswerThatDoesNotComeInTimeIsGivenUpAndDroppedWhenItComes) {
  const auto late = begin(link_->ask<keeper::Listing>(keeper::List{}, 30ms));
  const std::uint64_t id = request(keeper::Verb::list);
  const auto error = finish(late);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, Errc::timed_out);
  peer_->say(id, keeper::Listing{});
  const auto next = begin(link_->ask<keeper::Listing>(keeper::List{}));
  peer_->say(request(keeper::Verb::list), keeper::Listing{});
  EXPECT_TRUE(finish(next));
}

TEST_F(KeeperLinkTest, WhenTheConnectionBreaksEveryRequestFailsAndEveryLaterOne) {
  Collected output;
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  const auto followed = begin(link_->follow("a", 0, output));
  request(keeper::Verb::attach);
  peer_->close();
  EXPECT_EQ(finish(asked).error().code, Errc::keeper_unreachable);
  EXPECT_EQ(finish(followed).error().code, Errc::keeper_unreachable);
  EXPECT_TRUE(link_->broken());
  const auto later = begin(link_->ask<keeper::Listing>(keeper::List{}));
  EXPECT_EQ(finish(later).error().code, Errc::keeper_unreachable);
  EXPECT_TRUE(finish(begin(link_->wait_for_end(10s))));
}

TEST_F(KeeperLinkTest, WhatIsNoFrameBreaksTheLink) {
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  request(keeper::Verb::list);
  peer_->write(std::string(64, '\xff'));
  const auto answer = finish(asked);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::keeper_protocol);
}

TEST_F(KeeperLinkTest, OutputArrivesInPiecesWhereverItsFramesAreCut) {
  Collected output;
  const auto followed = begin(link_->follow("a", 100, output));
  const std::uint64_t id = request(keeper::Verb::attach);
  const std::string bytes =
      record(Stream::out, "one\n") + record(Stream::err, "two\n") + record(Stream::out, "three\n");
  std::uint64_t offset = 100;
  for (const char byte : bytes) {
    peer_->say(id, keeper::Output{.offset = offset++, .bytes = std::string{byte}});
    loop_.restart();
    loop_.run_one_for(1ms);
  }
  peer_->say(id, keeper::Ended{.exec_id = "a", .outcome = keeper::Outcome::exited, .code = 7});
  const auto ended = finish(followed);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->exit_code, 7);
  EXPECT_EQ(output.out, "one\nthree\n");
  EXPECT_EQ(output.err, "two\n");
  EXPECT_EQ(output.next_offset, 100 + bytes.size());
}

TEST_F(KeeperLinkTest, WhatArrivedBeforeTheBreakIsTaken) {
  Collected output;
  const auto followed = begin(link_->follow("a", 0, output));
  const std::uint64_t id = request(keeper::Verb::attach);
  const std::string whole = record(Stream::out, "whole");
  const std::string half = record(Stream::out, "half").substr(0, 18);
  peer_->say(id, keeper::Output{.bytes = whole + half});
  peer_->close();
  EXPECT_EQ(finish(followed).error().code, Errc::keeper_unreachable);
  EXPECT_EQ(output.out, "whole");
  EXPECT_EQ(output.next_offset, whole.size());
}

TEST_F(KeeperLinkTest, BytesThatAreNoRecordEndTheFollowingAndNotTheLink) {
  Collected output;
  const auto followed = begin(link_->follow("a", 5, output));
  const std::uint64_t id = request(keeper::Verb::attach);
  peer_->say(id, keeper::Output{.offset = 5, .bytes = std::string(100, 'x')});
  const auto ended = finish(followed);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::io_failed);
  EXPECT_TRUE(ended.error().message.contains("5")) << ended.error().message;
  peer_->say(id, keeper::Output{.offset = 105, .bytes = "nobody takes this"});
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  peer_->say(request(keeper::Verb::list), keeper::Listing{});
  EXPECT_TRUE(finish(asked));
}

TEST_F(KeeperLinkTest, ATakerThatStandsStillStopsTheReadingAndLosesNothing) {
  class Halting final : public OutputTaker {
   public:
    Halting(asio::io_context& loop, bool& go) : loop_(loop), go_(go) {}
    Task<> take(std::span<const OutputPiece> pieces) override {
      asio::steady_timer timer{loop_};
      while (!go_) {
        timer.expires_after(1ms);
        co_await timer.async_wait(asio::use_awaitable);
      }
      for (const OutputPiece& piece : pieces) bytes += piece.bytes.size();
      co_return Result<>{};
    }
    std::uint64_t bytes = 0;

   private:
    asio::io_context& loop_;
    bool& go_;
  };
  bool go = false;
  Halting halting{loop_, go};
  const auto followed = begin(link_->follow("a", 0, halting));
  const std::uint64_t id = request(keeper::Verb::attach);
  std::string frame;
  keeper::append_frame(frame, id,
                       keeper::Output{.bytes = record(Stream::out, std::string(100'000, 'x'))});
  constexpr int frames = 200;  // 20 MB
  std::string all;
  for (int i = 0; i < frames; ++i) all += frame;
  std::size_t sent = 0;
  int quiet = 0;
  ASSERT_TRUE(run_until([&] {
    const std::size_t before = sent;
    sent += peer_->write_some(std::string_view{all}.substr(sent, 65536));
    quiet = sent == before ? quiet + 1 : 0;
    return quiet > 50;
  }));
  EXPECT_LT(sent, std::size_t{8} << 20);
  go = true;
  ASSERT_TRUE(run_until([&] {
    sent += peer_->write_some(std::string_view{all}.substr(sent));
    return sent == all.size();
  }));
  peer_->say(id, keeper::Ended{.exec_id = "a", .outcome = keeper::Outcome::exited});
  ASSERT_TRUE(finish(followed));
  EXPECT_EQ(halting.bytes, 100'000U * frames);
}

TEST_F(KeeperLinkTest, ALargeRequestIsSentAsThePeerTakesIt) {
  const keeper::Write large{.exec_id = "a", .bytes = std::string(900'000, 'w')};
  const auto asked = begin(link_->ask<keeper::Done>(large));
  const auto also = begin(link_->ask<keeper::Listing>(keeper::List{}));
  peer_->say(request(keeper::Verb::write), keeper::Done{});
  peer_->say(request(keeper::Verb::list), keeper::Listing{});
  EXPECT_TRUE(finish(asked));
  EXPECT_TRUE(finish(also));
}

TEST_F(KeeperLinkTest, OpenIsSaidBeforeHelloAndItsRefusalBreaksTheLink) {
  connect(keeper::Open{.keeper_id = "k"});
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  std::optional<keeper::Frame> first;
  ASSERT_TRUE(run_until([&] { return (first = peer_->next()).has_value(); }));
  EXPECT_EQ(first->verb, keeper::Verb::open);
  const std::uint64_t id = first->request;
  const auto hello = peer_->next();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->verb, keeper::Verb::hello);
  peer_->say(id, keeper::Refused{.code = "conflict", .message = "taken", .remedy = {}});
  peer_->close();
  const auto answer = finish(asked);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::conflict);
}

TEST_F(KeeperLinkTest, AfterOpenIsDoneTheLinkIsLikeAnyOther) {
  connect(keeper::Open{.keeper_id = "k"});
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  std::optional<keeper::Frame> first;
  ASSERT_TRUE(run_until([&] { return (first = peer_->next()).has_value(); }));
  peer_->say(first->request, keeper::Done{});
  peer_->say(0, keeper::Welcome{});
  peer_->say(request(keeper::Verb::list), keeper::Listing{});
  EXPECT_TRUE(finish(asked));
}

TEST_F(KeeperLinkTest, ClosingFailsWhatWaitsAndEndsTheReader) {
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  request(keeper::Verb::list);
  EXPECT_TRUE(finish(begin(link_->close())));
  EXPECT_EQ(finish(asked).error().code, Errc::keeper_unreachable);
  EXPECT_TRUE(run_until([&] { return tasks_.size() == 0; }));
}

TEST_F(KeeperLinkTest, ALinkThatGoesLeavesNoneOfItsRequestsWaiting) {
  Collected output;
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  const auto followed = begin(link_->follow("a", 0, output));
  request(keeper::Verb::attach);
  link_.reset();
  EXPECT_FALSE(finish(asked));
  EXPECT_FALSE(finish(followed));
}

TEST_F(KeeperLinkTest, AFollowerThatIsCancelledLeavesTheLinkUsable) {
  Collected output;
  const auto followed = begin(link_->follow("a", 0, output));
  const std::uint64_t id = request(keeper::Verb::attach);
  followed->cancel.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(finish(followed).error().code, Errc::cancelled);
  peer_->say(id, keeper::Output{.bytes = record(Stream::out, "late")});
  const auto asked = begin(link_->ask<keeper::Listing>(keeper::List{}));
  peer_->say(request(keeper::Verb::list), keeper::Listing{});
  EXPECT_TRUE(finish(asked));
  EXPECT_EQ(output.out, "");
}

}  // namespace
}  // namespace berth::keepers
