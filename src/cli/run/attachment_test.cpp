#include "cli/run/attachment.hpp"

#include "cli/objects.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <array>
#include <csignal>
#include <functional>
#include <sstream>
#include <thread>

namespace berth::cli {
namespace {

using asio::ip::tcp;
using core::OutputStream;
using testing::HasSubstr;
namespace beast = boost::beast;

constexpr auto run_id = "0190cccc-0000-7000-8000-000000000003";

// The server's end of one attached socket.
class Peer {
 public:
  explicit Peer(tcp::socket socket) : socket_(std::move(socket)) {
    beast::flat_buffer buffer;
    beast::http::request<beast::http::string_body> request;
    beast::http::read(socket_.next_layer(), buffer, request);
    target = std::string{request.target()};
    socket_.accept(request);
  }
  void output(OutputStream stream, std::int64_t next_offset, std::string_view bytes) {
    socket_.binary(true);
    socket_.write(asio::buffer(core::to_frame({stream, next_offset, bytes})));
  }
  void say(const std::string& text) {
    socket_.text(true);
    socket_.write(asio::buffer(text));
  }
  void end(int exit_code) {
    say(R"({"type":"ended","run":{"id":"x","status":"succeeded","exitCode":)" +
        std::to_string(exit_code) + "}}");
    close();
  }
  void close() {
    beast::error_code gone;
    socket_.close(beast::websocket::close_code::normal, gone);
  }
  // Nothing once the client has disconnected.
  std::optional<core::AttachRequest> hear() {
    beast::flat_buffer buffer;
    beast::error_code gone;
    socket_.read(buffer, gone);
    if (gone) return std::nullopt;
    return core::parse_attach_request(
               {static_cast<const char*>(buffer.cdata().data()), buffer.size()})
        .value();
  }

  std::string target;

 private:
  beast::websocket::stream<tcp::socket> socket_;
};

// A server that is simulated by one script per connection.
class AttachmentTest : public testing::Test {
 protected:
  using Script = std::function<void(Peer&)>;

  void serve(std::vector<Script> scripts) {
    thread_ = std::jthread{[this, scripts = std::move(scripts)] {
      for (const Script& script : scripts) {
        if (!somebody_comes()) return;
        Peer peer{acceptor_.accept()};
        targets_.push_back(peer.target);
        script(peer);
      }
    }};
  }
  Result<AttachEnd> follow(AttachOptions wanted) {
    wanted.run_id = run_id;
    const Client client{{.host = "127.0.0.1", .port = acceptor_.local_endpoint().port()}, {}};
    Attachment attachment{client, console_};
    auto end = attachment.follow(std::move(wanted));
    if (thread_.joinable()) thread_.join();
    return end;
  }
  // A client that gave up must not block the test.
  bool somebody_comes() {
    pollfd poll{.fd = acceptor_.native_handle(), .events = POLLIN, .revents = 0};
    const bool came = ::poll(&poll, 1, 20'000) == 1;
    EXPECT_TRUE(came) << "the client did not connect";
    return came;
  }
  static std::int64_t exit_of(const Result<AttachEnd>& end) {
    return std::get<RunEnded>(end.value()).run.at("exitCode").as_int64();
  }

  asio::io_context context_;
  tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::vector<std::string> targets_;
  std::ostringstream out_;
  std::ostringstream err_;
  Console console_{.out = out_, .err = err_, .in = -1};
  std::jthread thread_;
};

TEST_F(AttachmentTest, KeepsTheStreamsApartAndEveryByte) {
  const std::string bytes{"\0\xff\r\n", 4};
  serve({[&](Peer& peer) {
    peer.output(OutputStream::stdout_, 4, bytes);
    peer.output(OutputStream::stderr_, 7, "err");
    peer.say(R"({"type":"of tomorrow"})");
    peer.output(OutputStream::stdout_, 8, "x");
    peer.end(3);
  }});
  EXPECT_EQ(exit_of(follow({})), 3);
  EXPECT_EQ(out_.str(), bytes + "x");
  EXPECT_EQ(err_.str(), "err");
}

TEST_F(AttachmentTest, GoesOnWhereABrokenConnectionStoppedAndSaysSo) {
  serve({[](Peer& peer) { peer.output(OutputStream::stdout_, 5, "first"); }, [](Peer& /*peer*/) {},
         [](Peer& peer) {
           peer.output(OutputStream::stdout_, 11, "second");
           peer.end(0);
         }});
  EXPECT_EQ(exit_of(follow({})), 0);
  EXPECT_EQ(out_.str(), "firstsecond");
  ASSERT_EQ(targets_.size(), 3U);
  EXPECT_THAT(targets_[0], HasSubstr("/attach?offset=0"));
  EXPECT_THAT(targets_[1], HasSubstr("/attach?offset=5"));
  EXPECT_THAT(targets_[2], HasSubstr("/attach?offset=5"));
  EXPECT_THAT(err_.str(), HasSubstr("the connection is lost"));
  EXPECT_THAT(err_.str(), HasSubstr("attached again"));
}

TEST_F(AttachmentTest, OfARunAtAnotherServerItSaysOnceWhereTheOutputIsAndEndsWithItsCode) {
  const auto says_where = [](Peer& peer) {
    peer.say(R"({"type":"error","error":"is on the disk of server b","code":"log_unavailable"})");
  };
  serve({says_where, [&](Peer& peer) {
           says_where(peer);
           peer.end(3);
         }});
  EXPECT_EQ(exit_of(follow({})), 3);
  const std::string said = err_.str();
  EXPECT_THAT(said, HasSubstr("berth: is on the disk of server b\n"));
  EXPECT_EQ(said.find("server b"), said.rfind("server b")) << said;
}

TEST_F(AttachmentTest, GivesUpAfterItsPatienceAndSaysHowToComeBack) {
  const Client nobody{{.host = "127.0.0.1", .port = 1}, {}};
  Attachment attachment{nobody, console_};
  const auto end =
      attachment.follow({.run_id = run_id, .reattach_for = std::chrono::milliseconds{300}});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Errc::server_unreachable);
  EXPECT_THAT(end.error().remedy, HasSubstr("berth run logs -f"));
}

TEST_F(AttachmentTest, WhatTheServerSaysOfATerminalIsItsAnswerAndIsNotAskedForAgain) {
  thread_ = std::jthread{[this] {
    if (!somebody_comes()) return;
    tcp::socket socket = acceptor_.accept();
    beast::flat_buffer buffer;
    beast::http::request<beast::http::string_body> request;
    beast::http::read(socket, buffer, request);
    beast::http::response<beast::http::string_body> refusal{
        beast::http::status::internal_server_error, request.version()};
    refusal.body() =
        R"({"error":"open a terminal of the sandbox: none is left","code":"io_failed"})";
    refusal.prepare_payload();
    beast::http::write(socket, refusal);
  }};
  const auto end = follow({.path = "/api/environment-leases/x/terminal?id=y"});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Errc::io_failed);
  EXPECT_EQ(end.error().message, "open a terminal of the sandbox: none is left");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(AttachmentTest, AServerThatIsThereAndSaysNothingIsNotCalledMissing) {
  // The kernel accepts the connection, but no process answers.
  const auto end = follow({.path = "/api/environment-leases/x/stream?command=y",
                           .on_break = OnBreak::end,
                           .answer_limit = std::chrono::seconds{1}});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Errc::timed_out);
  EXPECT_THAT(end.error().message, HasSubstr("did not answer within 1 s"));
  EXPECT_THAT(end.error().remedy, testing::Not(HasSubstr("berth serve")));
}

TEST_F(AttachmentTest, StdinFlowsInOrderAndEndsOnlyAfterItWasTaken) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd reading{ends[0]};
  std::string sent(600'000, 'a');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
  std::jthread feeds{[&sent, end = ends[1]] {
    const Fd writing{end};
    std::string_view rest = sent;
    while (!rest.empty()) {
      const ssize_t put = ::write(writing.get(), rest.data(), rest.size());
      if (put <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
  }};
  std::string heard;
  std::size_t most_waiting = 0;
  serve({[&](Peer& peer) {
    std::size_t taken = 0;
    while (auto request = peer.hear()) {
      const auto* piece = std::get_if<core::AttachStdin>(&*request);
      if (piece == nullptr) break;
      heard += piece->bytes;
      most_waiting = std::max(most_waiting, heard.size() - taken);
      // Accepted late, so that the client has to wait.
      if (heard.size() - taken < 200'000 && heard.size() < sent.size()) continue;
      peer.say(R"({"type":"stdin_taken","bytes":)" + std::to_string(heard.size() - taken) + "}");
      taken = heard.size();
    }
    peer.end(0);
  }});
  EXPECT_EQ(exit_of(follow({.stdin_fd = reading.get()})), 0);
  EXPECT_EQ(heard, sent);
  EXPECT_LE(most_waiting, core::attach_stdin_window);
}

TEST_F(AttachmentTest, TheFirstInterruptCancelsAndTheSecondLeaves) {
  std::size_t cancels = 0;
  serve({[&](Peer& peer) {
    peer.say(R"({"type":"state","run":{"status":"running"}})");
    ::kill(::getpid(), SIGINT);
    while (auto request = peer.hear()) {
      if (!std::holds_alternative<core::AttachCancel>(*request)) continue;
      ++cancels;
      ::kill(::getpid(), SIGINT);
    }
  }});
  const auto end = follow({.on_interrupt = OnInterrupt::cancel_run});
  EXPECT_EQ(std::get<Left>(end.value()).signal, SIGINT);
  EXPECT_EQ(cancels, 1U);
  EXPECT_THAT(err_.str(), HasSubstr("cancelling run"));
}

TEST_F(AttachmentTest, WhoOnlyLooksLeavesAtOnce) {
  serve({[](Peer& peer) {
    ::kill(::getpid(), SIGINT);
    EXPECT_FALSE(peer.hear());
  }});
  EXPECT_EQ(std::get<Left>(follow({}).value()).signal, SIGINT);
}

TEST_F(AttachmentTest, LeavesWhenTheOutputSoFarWasShown) {
  serve({[](Peer& peer) {
    peer.output(OutputStream::stdout_, 5, "first");
    peer.output(OutputStream::stderr_, 8, "err");
    while (peer.hear()) {
    }
  }});
  const auto end = follow({.output_to = OutputTo::all_to_out, .until = 8});
  EXPECT_TRUE(std::holds_alternative<AllShown>(end.value()));
  EXPECT_EQ(out_.str(), "firsterr");
}

TEST_F(AttachmentTest, OneStreamCanBeLeftOut) {
  serve({[](Peer& peer) {
    peer.output(OutputStream::stdout_, 5, "first");
    peer.output(OutputStream::stderr_, 8, "err");
    peer.end(0);
  }});
  EXPECT_EQ(exit_of(follow({.only = OutputStream::stderr_})), 0);
  EXPECT_EQ(out_.str() + "|" + err_.str(), "|err");
}

TEST_F(AttachmentTest, APersonSeesThePositionInTheQueueAndThenNotAnyMore) {
  console_.err_is_terminal = true;
  serve({[](Peer& peer) {
    peer.say(R"({"type":"state","run":{"status":"queued","queue":{"position":2,
                 "explanation":"the server is full"}}})");
    peer.say(R"({"type":"state","run":{"status":"running"}})");
    peer.end(0);
  }});
  EXPECT_EQ(exit_of(follow({})), 0);
  EXPECT_EQ(err_.str(), "\r\x1b[2Kqueued at position 2: the server is full\r\x1b[2K");
}

TEST_F(AttachmentTest, AnOutputThatNobodyReadsEndsIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    const Fd reading{ends[0]};
  }
  const Fd writing{ends[1]};
  console_.out_fd = writing.get();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  serve({[](Peer& peer) {
    peer.output(OutputStream::stdout_, 5, "first");
    while (peer.hear()) {
    }
  }});
  EXPECT_TRUE(std::holds_alternative<NobodyReads>(follow({}).value()));
  std::signal(SIGPIPE, before);
}

TEST_F(AttachmentTest, AReaderThatPausesDoesNotSetTheSharedDescriptorNonBlocking) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd reading{ends[0]};
  const Fd writing{ends[1]};
  console_.out_fd = writing.get();
  const std::string much(1'000'000, 'x');
  std::string got;
  std::jthread reads{[&] {
    std::array<char, 8192> some{};
    while (got.size() < much.size()) {
      const ssize_t size = ::read(reading.get(), some.data(), some.size());
      if (size <= 0) return;
      got.append(some.data(), static_cast<std::size_t>(size));
    }
  }};
  serve({[&](Peer& peer) {
    peer.output(OutputStream::stdout_, static_cast<std::int64_t>(much.size()), much);
    peer.end(0);
  }});
  EXPECT_EQ(exit_of(follow({})), 0);
  reads.join();
  EXPECT_EQ(got, much);
  EXPECT_EQ(::fcntl(writing.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace berth::cli
