#include "engine/plugins/outbound_fetch.hpp"

#include "support/loopback_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using tests::LoopbackServer;
using tests::SeenRequest;

// A resolver with names that the test defines.
class Names final : public egress::Resolver {
 public:
  explicit Names(std::map<std::string, std::vector<std::string>> known)
      : known_(std::move(known)) {}
  Task<std::vector<egress::Address>> resolve(std::string name) override {
    ++asked;
    std::vector<egress::Address> out;
    for (const std::string& text : known_[name]) out.push_back(*egress::Address::parse(text));
    co_return out;
  }
  int asked = 0;

 private:
  std::map<std::string, std::vector<std::string>> known_;
};

class OutboundFetchTest : public testing::Test {
 protected:
  Result<FetchAnswer> fetch(OutboundFetch& outbound, FetchRequest request) {
    std::optional<Result<FetchAnswer>> answer;
    asio::co_spawn(loop_, outbound.fetch(std::move(request)),
                   [&](const std::exception_ptr& thrown, Result<FetchAnswer> got) {
                     EXPECT_FALSE(thrown);
                     answer.emplace(std::move(got));
                   });
    loop_.restart();
    loop_.run();
    return *std::move(answer);
  }
  Errc refusal(OutboundFetch& outbound, const std::string& url) {
    const Result<FetchAnswer> answer = fetch(outbound, {.url = url});
    return answer ? Errc::bug : answer.error().code;
  }

  asio::io_context loop_;
  const std::vector<egress::Range> loopback_{*egress::Range::parse("127.0.0.0/8")};
};

TEST_F(OutboundFetchTest, reachesNothingThatIsNotPublic) {
  Names names{{{"inside.example", {"10.1.2.3"}},
               {"both.example", {"93.184.216.34", "127.0.0.1"}},
               {"metadata.example", {"169.254.169.254"}},
               {"six.example", {"::1"}}}};
  OutboundFetch outbound{loop_.get_executor(), names};
  for (const std::string url :
       {"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest",
        "http://192.168.0.1/", "http://0.0.0.0/", "https://inside.example/", "http://both.example/",
        "http://metadata.example/", "http://six.example/"}) {
    EXPECT_EQ(name_of(refusal(outbound, url)), name_of(Errc::forbidden)) << url;
  }
}

TEST_F(OutboundFetchTest, takesOnlyPlainRequestsOverHttp) {
  Names names{{}};
  OutboundFetch outbound{loop_.get_executor(), names};
  for (const std::string url : {"file:///etc/passwd", "ftp://example.org/", "/relative", "http://",
                                "http://user:word@example.org/", "http://example.org:0/"}) {
    EXPECT_EQ(name_of(refusal(outbound, url)), name_of(Errc::validation_failed)) << url;
  }
  const auto connect = fetch(outbound, {.url = "http://a.example/", .method = "CONNECT"});
  ASSERT_FALSE(connect);
  EXPECT_EQ(connect.error().code, Errc::validation_failed);
  const auto split = fetch(outbound, {.url = "http://a.example/", .headers = {{"A", "b\r\nC: d"}}});
  ASSERT_FALSE(split);
  EXPECT_EQ(split.error().code, Errc::validation_failed);
}

TEST_F(OutboundFetchTest, connectsToTheAddressThatWasCheckedAndFollowsNobody) {
  const LoopbackServer server{[](const SeenRequest& request) {
    return request.line.starts_with("POST")
               ? tests::http_answer(201, "made", "X-Two: a\r\nX-Two: b\r\n")
               : tests::http_answer(302, "", "Location: http://127.0.0.1:1/\r\n");
  }};
  Names names{{{"api.example", {"127.0.0.1"}}}};
  OutboundFetch outbound{loop_.get_executor(), names, loopback_};
  const std::string port = server.url().substr(server.url().rfind(':'));
  const auto made = fetch(outbound, {.url = "http://api.example" + port + "/boxes?a=1",
                                     .method = "POST",
                                     .headers = {{"Host", "evil"}, {"X-Key", "k"}},
                                     .body = "{}"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->status, 201U);
  EXPECT_EQ(made->body, "made");
  EXPECT_EQ(made->headers.at("x-two"), "a, b");
  EXPECT_EQ(names.asked, 1);
  const auto moved = fetch(outbound, {.url = "http://api.example" + port + "/"});
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->status, 302U);
  ASSERT_EQ(server.seen().size(), 2U);
  EXPECT_EQ(server.seen().front().line, "POST /boxes?a=1 HTTP/1.1");
  EXPECT_EQ(server.seen().front().header("Host"), "api.example" + port);
  EXPECT_EQ(server.seen().front().header("X-Key"), "k");
  EXPECT_EQ(server.seen().front().body, "{}");
}

TEST_F(OutboundFetchTest, takesNoMoreThanItsLimits) {
  const LoopbackServer server{
      [](const SeenRequest&) { return tests::http_answer(200, std::string(4096, 'x')); }};
  Names names{{}};
  OutboundFetch outbound{loop_.get_executor(), names, loopback_,
                         FetchLimits{.request_bytes_max = 16, .answer_bytes_max = 1024}};
  EXPECT_EQ(refusal(outbound, server.url() + "/"), Errc::body_too_large);
  const auto large =
      fetch(outbound, {.url = server.url(), .method = "POST", .body = std::string(17, 'x')});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Errc::body_too_large);
}

}  // namespace
}  // namespace berth::engine
