#include "egress/request.hpp"

#include "egress/refusal.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

Result<ProxyRequest> ask(const std::string& line, const std::string& fields,
                         Door door = Door::proxy) {
  BERTH_TRY(const RequestHead head, parse_request_head(line + "\r\n" + fields + "\r\n"));
  return understand(head, door);
}

TEST(EgressRequest, GoesOutInOriginFormWithItsOwnHost) {
  const auto request =
      ask("GET http://A.test:8080?q=1 HTTP/1.1",
          "Host: a.TEST:8080\r\nProxy-Authorization: x\r\nAccept: */*\r\nConnection: close\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->target.str(), "a.test:8080");
  EXPECT_FALSE(request->keeps_alive);
  EXPECT_EQ(request->path_without_query(), "/");
  EXPECT_EQ(upstream_head(*request, request->target.authority()),
            "GET /?q=1 HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\nVia: 1.1 berth\r\n"
            "Connection: close\r\n\r\n");
}

TEST(EgressRequest, IsRefusedWhereTargetAndHostCouldDiffer) {
  struct Case {
    const char* line;
    const char* fields;
  };
  for (const Case& c :
       {Case{"GET http://a.test/ HTTP/1.1", ""},
        Case{"GET http://a.test/ HTTP/1.1", "Host: b.test\r\n"},
        Case{"GET http://a.test/ HTTP/1.1", "Host: a.test:81\r\n"},
        Case{"GET http://a.test/ HTTP/1.1", "Host: a.test\r\nHost: a.test\r\n"},
        Case{"GET http://a.test/ HTTP/1.1", "Host: a.test, b.test\r\n"},
        Case{"GET http://a.test/ HTTP/1.1", "Host: x@a.test\r\n"},
        Case{"GET http://x@a.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET http://a.test:80@b.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET http://a.test#@b.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET http://a.test\\@b.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET http:///a.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET http:a.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET https://a.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET ftp://a.test/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET /path HTTP/1.1", "Host: a.test\r\n"},
        Case{"OPTIONS * HTTP/1.1", "Host: a.test\r\n"},
        Case{"GET a.test:80 HTTP/1.1", "Host: a.test\r\n"},
        Case{"CONNECT a.test HTTP/1.1", "Host: a.test\r\n"},
        Case{"CONNECT a.test:443 HTTP/1.1", "Host: b.test\r\n"},
        Case{"CONNECT a.test:443 HTTP/1.1", "Host: a.test:80\r\n"},
        Case{"CONNECT a.test:443@b.test:443 HTTP/1.1", "Host: a.test\r\n"},
        Case{"CONNECT http://a.test:443/ HTTP/1.1", "Host: a.test\r\n"},
        Case{"CONNECT a.test:443 HTTP/1.1", "Host: a.test\r\nContent-Length: 5\r\n"},
        Case{"CONNECT a.test:443 HTTP/1.1", "Host: a.test\r\nTransfer-Encoding: chunked\r\n"},
        Case{"CONNECT 0x7f000001:443 HTTP/1.1", "Host: 0x7f000001\r\n"},
        Case{"CONNECT [::ffff:7f00:1]:443 HTTP/1.1", "Host: [::ffff:7f00:1]\r\n"}}) {
    const auto request = ask(c.line, c.fields);
    ASSERT_FALSE(request) << c.line << " " << c.fields;
    EXPECT_EQ(status_of(request.error().code), 400U) << c.line;
  }
}

TEST(EgressRequest, ConnectTakesTheHostThatClientsSend) {
  EXPECT_TRUE(ask("CONNECT a.test:443 HTTP/1.1", "Host: a.test:443\r\n"));
  EXPECT_TRUE(ask("CONNECT a.test:443 HTTP/1.1", "Host: a.test\r\n"));
  EXPECT_TRUE(ask("CONNECT a.test:443 HTTP/1.0", ""));
  EXPECT_TRUE(ask("CONNECT a.test:443 HTTP/1.1", "Host: a.test\r\nContent-Length: 0\r\n"));
}

TEST(EgressRequest, CallbackServesNothingButTheApi) {
  const auto status = [](const std::string& target, Door door) {
    const auto request = ask("GET " + target + " HTTP/1.1",
                             "Host: berth.internal\r\nAuthorization: Bearer t\r\n", door);
    if (!request) return status_of(request.error().code);
    return request->kind == ProxyRequest::Kind::callback ? 200U : 0U;
  };
  EXPECT_EQ(status("http://berth.internal/api/runs?x=/../", Door::proxy), 200U);
  EXPECT_EQ(status("/api/runs", Door::callback), 200U);
  EXPECT_EQ(status("http://berth.internal/api/runs", Door::callback), 200U);
  EXPECT_EQ(status("/api/runs", Door::proxy), 400U);
  for (const char* path :
       {"/", "/api", "/apix/", "/ui/", "/api/../ui", "/api/./x", "/api//x", "/api/%2e%2e/ui",
        "/api/%2E./ui", "/api/..%2fui", "/api/x/..", "/api/..;/ui", "//api/x", "/API/x",
        "/api/\\..\\ui", "/api/%5c../x", "/metrics", "/api/%00"}) {
    EXPECT_EQ(status(std::string{"http://berth.internal"} + path, Door::proxy), 403U) << path;
    EXPECT_EQ(status(path, Door::callback), 403U) << path;
  }
  EXPECT_EQ(status("http://berth.internal:8080/api/x", Door::proxy), 400U);
  EXPECT_EQ(status("http://other.test/api/x", Door::callback), 400U);
  EXPECT_FALSE(ask("CONNECT berth.internal:80 HTTP/1.1", "Host: berth.internal\r\n"));
  EXPECT_FALSE(ask("CONNECT a.test:80 HTTP/1.1", "Host: a.test\r\n", Door::callback));
}

// The server behind the proxy trusts its own machine.
TEST(EgressRequest, CallbackNeedsATokenThatReallyGoesOut) {
  const auto status = [](const std::string& fields) {
    const auto request =
        ask("GET /api/runs HTTP/1.1", "Host: berth.internal\r\n" + fields, Door::callback);
    return request ? 200U : status_of(request.error().code);
  };
  EXPECT_EQ(status("authorization: bearer t\r\n"), 200U);
  for (const char* fields :
       {"", "Authorization:\r\n", "Authorization: Bearer\r\n", "Authorization: Bearer \r\n",
        "Authorization: Basic eDp5\r\n", "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
        "Authorization: Bearer t\r\nConnection: authorization\r\n",
        "Authorization: Bearer t\r\nConnection: close, Authorization\r\n",
        "Authorization: Bearer t\r\nProxy-Connection: AUTHORIZATION\r\n",
        "Proxy-Authorization: Bearer t\r\n", "Authorization_: Bearer t\r\n"}) {
    EXPECT_EQ(status(fields), 401U) << fields;
  }
  EXPECT_TRUE(ask("GET /api/health HTTP/1.1", "Host: a\r\n", Door::callback));
  EXPECT_FALSE(ask("GET /api/health/x HTTP/1.1", "Host: a\r\n", Door::callback));
  EXPECT_FALSE(ask("POST /api/health HTTP/1.1", "Host: a\r\n", Door::callback));
}

TEST(EgressAnswer, HasTheFramingThatFollowsIt) {
  const auto answer = *parse_response_head(
      "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX: y\r\nTransfer-Encoding: chunked\r\n"
      "\r\n");
  EXPECT_EQ(client_head(answer, {.kind = Framing::Kind::chunked}, Persistence::keep_alive),
            "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\nVia: 1.1 berth\r\n"
            "Connection: keep-alive\r\n\r\n");
}

TEST(EgressRefusal, NamesTheRuleAndIsOneMessage) {
  const Refusal refusal{
      .error = {Errc::forbidden, "no rule allows \"a\r\n\r\nHTTP/1.1 200 OK", "add it"},
      .rule = "default"};
  const std::string text = refusal_text(refusal, Persistence::close, AnswerBody::present);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_EQ(text.find("\r\n\r\n"), text.rfind("\r\n\r\n"));
  EXPECT_NE(text.find(R"("rule":"default")"), std::string::npos);
  EXPECT_NE(text.find(R"("remedy":"add it")"), std::string::npos);
  EXPECT_NE(text.find("Proxy-Status: berth; error=http_request_denied; details="),
            std::string::npos);
}

}  // namespace
}  // namespace berth::egress
