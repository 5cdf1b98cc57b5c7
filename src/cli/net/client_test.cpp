#include "cli/net/client.hpp"

#include "support/loopback_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;
using tests::http_answer;
using tests::LoopbackServer;
using tests::SeenRequest;

Client client_of(const LoopbackServer& server, ClientLimits limits = {}) {
  return Client{parse_endpoint(server.url()).value(), Secret{"brt_token"}, limits};
}

Client client_of(const std::string& url) {
  return Client{parse_endpoint(url).value(), std::nullopt};
}

TEST(ParseEndpoint, TakesServersAndNothingElse) {
  const Endpoint https = parse_endpoint("https://b.example/x/").value();
  EXPECT_TRUE(https.tls);
  EXPECT_EQ(https.port, 443);
  EXPECT_EQ(https.prefix, "/x");
  EXPECT_EQ(https.authority(), "b.example");
  const Endpoint v6 = parse_endpoint("http://[::1]:3100").value();
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.authority(), "[::1]:3100");
  for (const auto* wrong : {"", "b.example", "ftp://b", "http://", "http://u:p@b", "http://b?x",
                            "http://b:0", "http://b:70000", "http://a b"}) {
    const auto endpoint = parse_endpoint(wrong);
    ASSERT_FALSE(endpoint) << wrong;
    EXPECT_EQ(endpoint.error().code, Errc::config_invalid);
    EXPECT_FALSE(endpoint.error().remedy.empty());
  }
}

TEST(Client, SendsARequestAndReadsTheAnswer) {
  LoopbackServer server{[](const SeenRequest&) {
    return http_answer(200, R"({"a":1})",
                       "ETag: \"7\"\r\nLink: </api/x?after=k>; rel=\"next\"\r\n");
  }};
  const Result<Answer> answer = client_of(server).send(
      {.method = "PATCH", .path = "/api/x", .body = bj::object{{"b", "ü"}}, .if_match = "\"6\""});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body.at("a").as_int64(), 1);
  EXPECT_EQ(answer->etag, "\"7\"");
  EXPECT_EQ(answer->next, "/api/x?after=k");
  const SeenRequest seen = server.seen().at(0);
  EXPECT_EQ(seen.line, "PATCH /api/x HTTP/1.1");
  EXPECT_EQ(seen.body, R"({"b":"ü"})");
  EXPECT_EQ(seen.header("If-Match"), "\"6\"");
  EXPECT_EQ(seen.header("Authorization"), "Bearer brt_token");
  EXPECT_EQ("http://" + seen.header("Host"), server.url());
}

TEST(Client, ReadsChunkedAndUnmeasuredAnswers) {
  for (const std::string& raw :
       {std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n4\r\n[1,2\r\n1\r\n]\r\n0\r\n\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[1,2]"}}) {
    LoopbackServer server{[raw](const SeenRequest&) { return raw; }};
    const Result<Answer> answer = client_of(server).send({.path = "/"});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body.as_array().size(), 2u);
  }
}

TEST(Client, GivesTheErrorThatTheServerWrote) {
  LoopbackServer server{[](const SeenRequest&) {
    return http_answer(409, R"({"error":"name is taken","code":"environment_name_taken",
      "remedy":"take another","details":{"issues":[{"path":"/name","message":"taken"}],
      "deleteBlockedReasons":["managed_local"],"count":3}})");
  }};
  const Result<Answer> answer = client_of(server).send({.path = "/"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::environment_name_taken);
  EXPECT_EQ(answer.error().message, "name is taken");
  EXPECT_EQ(answer.error().remedy, "take another");
  EXPECT_EQ(answer.error().issues.at(0).path, "/name");
  EXPECT_EQ(answer.error().facts.at("deleteBlockedReasons").at(0), "managed_local");
}

TEST(Client, UnderstandsErrorsItDoesNotKnow) {
  EXPECT_EQ(error_of(404, R"({"error":"x","code":"newer_thing"})").code, Errc::route_not_found);
  EXPECT_THAT(error_of(404, R"({"error":"x","code":"newer_thing"})").message,
              HasSubstr("newer_thing"));
  EXPECT_EQ(error_of(401, "").code, Errc::unauthenticated);
  EXPECT_EQ(error_of(502, "<html>").message, "the server answered 502");
  EXPECT_EQ(error_of(400, R"({"error":5,"details":7})").code, Errc::validation_failed);
}

TEST(Client, FollowsPagesUpToTheLimit) {
  LoopbackServer server{[](const SeenRequest& request) {
    if (request.line.find("after=k") != std::string::npos) return http_answer(200, "[3,4]");
    return http_answer(200, "[1,2]", "Link: <http://x/api/l?after=k>; rel=\"next\"\r\n");
  }};
  EXPECT_EQ(client_of(server).list("/api/l", 100).value().size(), 4u);
  EXPECT_EQ(client_of(server).list("/api/l?a=b", 3).value().size(), 3u);
  EXPECT_EQ(client_of(server).list("/api/l", 2).value().size(), 2u);
  const auto seen = server.seen();
  EXPECT_EQ(seen.at(0).line, "GET /api/l?limit=100 HTTP/1.1");
  EXPECT_EQ(seen.at(1).line, "GET /api/l?after=k HTTP/1.1");
  EXPECT_EQ(seen.at(2).line, "GET /api/l?a=b&limit=3 HTTP/1.1");
  EXPECT_EQ(seen.size(), 5u) << "the last list needed one page only";
}

TEST(Client, SaysWhenNobodyAnswers) {
  const Result<Answer> answer = client_of("http://127.0.0.1:1").send({.path = "/"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::server_unreachable);
  EXPECT_THAT(answer.error().message, HasSubstr("http://127.0.0.1:1"));
  EXPECT_THAT(answer.error().remedy, HasSubstr("berth serve"));
}

TEST(Client, SaysWhenSomethingElseAnswers) {
  for (const std::string& raw :
       {std::string{"SSH-2.0-OpenSSH_9.2\r\n"}, std::string{}, std::string{"HTTP/1.1 200 OK\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1"}, http_answer(200, "<html>"),
        "HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x') + "\r\n\r\n"}) {
    LoopbackServer server{[raw](const SeenRequest&) { return raw; }};
    const Result<Answer> answer = client_of(server).send({.path = "/"});
    ASSERT_FALSE(answer) << raw.substr(0, 60);
    EXPECT_EQ(answer.error().code, Errc::server_unreachable) << raw.substr(0, 60);
  }
}

TEST(Client, DoesNotWaitForEver) {
  std::mutex held;
  std::unique_lock lock{held};
  LoopbackServer silent{[&held](const SeenRequest&) {
    const std::lock_guard wait{held};
    return std::string{};
  }};
  const Result<Answer> answer =
      client_of(silent, {.answer = std::chrono::milliseconds{50}}).send({.path = "/"});
  lock.unlock();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::timed_out);
}

TEST(Client, RefusesABodyWithoutEnd) {
  LoopbackServer server{
      [](const SeenRequest&) { return http_answer(200, std::string(5000, ' ')); }};
  EXPECT_FALSE(client_of(server, {.body_bytes_max = 4000}).send({.path = "/"}));
}

TEST(Client, FollowsAStreamOfEvents) {
  LoopbackServer server{[](const SeenRequest&) {
    return std::string{
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        ": hello\n\nid: 1\ndata: {\"a\":\ndata: 1}\n\nevent: x\ndata: 2\n\ndata: 3"};
  }};
  std::vector<std::string> got;
  const Result<> ended = client_of(server).follow("/s", [&](const Event& event) {
    got.push_back(event.id + "|" + event.name + "|" + event.data);
    return true;
  });
  EXPECT_TRUE(ended);
  EXPECT_EQ(got, (std::vector<std::string>{"1||{\"a\":\n1}", "|x|2"}));
}

TEST(Client, AStreamThatIsRefusedIsAnError) {
  LoopbackServer server{
      [](const SeenRequest&) { return http_answer(403, R"({"error":"no","code":"forbidden"})"); }};
  const Result<> ended = client_of(server).follow("/s", [](const Event&) { return true; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::forbidden);
}

TEST(EventReader, RefusesAnEventWithoutEnd) {
  EventReader reader;
  const std::string line = "data: " + std::string(60'000, 'x') + "\n";
  Result<bool> fed = true;
  for (int i = 0; i < 30 && fed; ++i) fed = reader.feed(line, [](const Event&) { return true; });
  EXPECT_FALSE(fed);
}

TEST(NextOf, TakesOnlyThePathOfTheNextPage) {
  EXPECT_EQ(next_of("</a?b=c>; rel=\"next\""), "/a?b=c");
  EXPECT_EQ(next_of("</p>; rel=\"prev\", <https://evil.example/a>; rel=\"next\""), "/a");
  EXPECT_EQ(next_of("</p>; rel=\"prev\""), std::nullopt);
  EXPECT_EQ(next_of("<evil>; rel=\"next\""), std::nullopt);
  EXPECT_EQ(next_of("garbage"), std::nullopt);
  EXPECT_EQ(next_of(""), std::nullopt);
}

TEST(UrlEncoded, LeavesOnlyWhatIsSafe) {
  EXPECT_EQ(url_encoded("a b/ü?"), "a%20b%2F%C3%BC%3F");
}

}  // namespace
}  // namespace berth::cli
