#include "http/server/relay/relay.hpp"

#include "http/endpoint.hpp"
#include "support/http.hpp"

#include <poll.h>

namespace berth::http {
namespace {

using http_test::Answer;
using http_test::Client;
using http_test::request;
using http_test::TestServer;
using std::chrono::milliseconds;

sockaddr_in loopback(unsigned short port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// The other end of a connection that the server has made: the server inside a sandbox.
class Inside {
 public:
  explicit Inside(Fd connection) : connection_(std::move(connection)) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(connection_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  // Everything up to and including `end`, or what came before the connection ended.
  std::string read_until(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && ::recv(connection_.get(), &byte, 1, 0) == 1) text += byte;
    return text;
  }
  std::string read_bytes(std::size_t size) {
    std::string text(size, '\0');
    const auto got = ::recv(connection_.get(), text.data(), size, MSG_WAITALL);
    return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  // False once the other side has disconnected.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Whether the other side ends the connection without more data before the test times out.
  bool ends() {
    char byte = 0;
    return ::recv(connection_.get(), &byte, 1, 0) == 0;
  }
  void close() { connection_ = {}; }

 private:
  Fd connection_;
};

// Where the server inside listens.
class Port {
 public:
  Port() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }
  unsigned short number() const { return number_; }
  Inside accept() { return Inside{Fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)}}; }

 private:
  Fd listener_;
  unsigned short number_ = 0;
};

struct NamePath {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(NamePath, (), (name))

class RelayTest : public testing::Test {
 protected:
  static Task<Fd> dial(unsigned short port) {
    Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    co_return socket;
  }
  static Task<Fd> refuse() {
    co_return fail(Errc::port_unreachable, "port 1 of the sandbox: nobody listens there",
                   "start it");
  }

  std::vector<Route> routes() {
    const auto call = [this](core::Call /*call*/, const NamePath& path) {
      return path.name == "nobody" ? refuse() : dial(port_.number());
    };
    return {RelayEndpoint<NamePath>{.path = "/in/{name}/*",
                                    .needs = core::Permission::signed_in,
                                    .tag = "test",
                                    .says = "Test",
                                    .call = call}};
  }

  // The client's response when the server inside sends these bytes and disconnects.
  Answer ask(std::string_view line, std::string_view said) {
    Client client{server_.port()};
    client.send(request(line));
    Inside inside = port_.accept();
    seen_ = inside.read_until("\r\n\r\n");
    inside.send(said);
    inside.close();
    return client.read_answer();
  }

  explicit RelayTest(milliseconds patience = milliseconds{60'000})
      : server_(routes(), Limits{.relays_max = 4,
                                 .relay_answer_timeout = patience,
                                 .relay_idle_timeout = patience,
                                 .sweep_interval = milliseconds{10}}) {}

  Port port_;
  TestServer server_;
  std::string seen_;
};

// A server with very short timeouts.
class HurriedRelayTest : public RelayTest {
 protected:
  HurriedRelayTest() : RelayTest(milliseconds{300}) {}
};

TEST_F(RelayTest, ARequestAndItsAnswerPassWithWhatBelongsToThem) {
  const Answer answer = ask("GET /in/x/a%20b/?q=1&q=2",
                            "HTTP/1.1 201 Made\r\nContent-Type: text/plain\r\nX-Own: y\r\n"
                            "Content-Length: 5\r\n\r\nhello");
  EXPECT_TRUE(seen_.starts_with("GET /a%20b/?q=1&q=2 HTTP/1.1\r\n")) << seen_;
  EXPECT_TRUE(seen_.contains("\r\nHost: localhost:" + std::to_string(port_.number()) + "\r\n"));
  EXPECT_TRUE(seen_.contains("\r\nX-Forwarded-Prefix: /in/x\r\n")) << seen_;
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.header("x-own"), "y");
  EXPECT_EQ(answer.header("content-type"), "text/plain");
}

TEST_F(RelayTest, RefusesWhatABrowserWouldRunAsPartOfOurPage) {
  for (const char* destination :
       {"script", "style", "worker", "sharedworker", "serviceworker", "audioworklet",
        "paintworklet", "xslt", "object", "embed", "manifest", "json", "SCRIPT", "unheard-of"}) {
    Client client{server_.port()};
    const Answer refused = client.ask(
        request("GET /in/x/x.js", "Sec-Fetch-Dest: " + std::string{destination} + "\r\n"));
    EXPECT_EQ(refused.status, 403) << destination;
    EXPECT_TRUE(refused.body.contains("\"code\":\"forbidden\"")) << refused.body;
    EXPECT_TRUE(refused.body.contains("berth sandbox port")) << refused.body;
  }
  for (const char* destination : {"document", "iframe", "empty", "image", "video", "websocket"}) {
    Client client{server_.port()};
    client.send(request("GET /in/x/page", "Sec-Fetch-Dest: " + std::string{destination} + "\r\n"));
    Inside inside = port_.accept();
    inside.read_until("\r\n\r\n");
    inside.send("HTTP/1.1 204 x\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 204) << destination;
  }
}

TEST_F(RelayTest, OneKeyPassesOnNoMoreThanItsShare) {
  TestServer server{routes(), Limits{.relays_of_caller_max = 1}};
  const std::string key = "Authorization: Bearer viewer-11\r\n";
  Client first{server.port()};
  first.send(request("GET /in/x/", key));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  const Answer refused = Client{server.port()}.ask(request("GET /in/x/", key));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.body.contains("relays_per_key")) << refused.body;
  inside.send("HTTP/1.1 204 x\r\n\r\n");
  EXPECT_EQ(first.read_answer().status, 204);
}

TEST_F(RelayTest, GivesWayToANewcomerWhenConnectionsRunOut) {
  TestServer server{routes(), Limits{.connections_max = 1, .sweep_interval = milliseconds{10}}};
  Client first{server.port()};
  first.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  Client newcomer{server.port()};
  EXPECT_EQ(newcomer.ask(request("GET /nothing")).status, 404);
  EXPECT_TRUE(inside.ends());
  EXPECT_TRUE(first.closed_by_server());
}

TEST_F(RelayTest, AnyMethodPasses) {
  for (const std::string method : {"OPTIONS", "PROPFIND", "DELETE", "PUT"}) {
    EXPECT_EQ(ask(method + " /in/x/", "HTTP/1.1 204 x\r\n\r\n").status, 204);
    EXPECT_TRUE(seen_.starts_with(method + " / HTTP/1.1\r\n")) << seen_;
  }
}

TEST_F(RelayTest, WhatProvesWhoTheClientIsStaysHere) {
  Client client{server_.port()};
  client.send(
      request("GET /in/x/",
              "Authorization: Bearer right\r\nCookie: berth_session=secret\r\n"
              "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nProxy-Authorization: p\r\n"
              "Connection: X-Second\r\nX-Second: secret\r\n"
              "Idempotency-Key: k\r\nX-Forwarded-For: 10.0.0.1\r\nTE: trailers\r\n"
              "Referer: http://localhost/api/x\r\nOrigin: http://localhost\r\nX-Kept: z\r\n"));
  Inside inside = port_.accept();
  const std::string seen = inside.read_until("\r\n\r\n");
  for (const char* secret : {"right", "secret", "X-Hop", "Proxy-", "Idempotency", "10.0.0.1",
                             "TE:", "Referer", "Origin: http://localhost\r\n"}) {
    EXPECT_FALSE(seen.contains(secret)) << secret << " in " << seen;
  }
  EXPECT_TRUE(seen.contains("\r\nX-Kept: z\r\n")) << seen;
  EXPECT_TRUE(seen.contains("\r\nConnection: close\r\n")) << seen;
}

TEST_F(RelayTest, AnAnswerFromInsideHasNoPowerOverTheOriginOfThisServer) {
  const Answer answer =
      ask("GET /in/x/",
          "HTTP/1.1 200 OK\r\nSet-Cookie: berth_session=evil\r\nClear-Site-Data: \"*\"\r\n"
          "Strict-Transport-Security: max-age=1\r\nAlt-Svc: h2=\"evil:443\"\r\n"
          "Access-Control-Allow-Origin: *\r\nContent-Security-Policy: default-src *\r\n"
          "Service-Worker-Allowed: /\r\nReport-To: {}\r\nWWW-Authenticate: Basic\r\n"
          "Cache-Control: public\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
          "Location: /next\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-security-policy"), "sandbox");
  EXPECT_EQ(answer.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(answer.header("cache-control"), "no-store");
  EXPECT_EQ(answer.header("location"), "/in/x/next") << "a path means one of the server inside";
  for (const char* name : {"set-cookie", "clear-site-data", "strict-transport-security", "alt-svc",
                           "access-control-allow-origin", "service-worker-allowed", "report-to",
                           "www-authenticate", "x-hop"}) {
    EXPECT_FALSE(answer.headers.contains(name)) << name;
  }
}

TEST_F(RelayTest, WhatSteersAProxyOrWasNeverHeardOfDoesNotPass) {
  const Answer answer =
      ask("GET /in/x/",
          "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /etc/passwd\r\nx-accel-buffering: no\r\n"
          "X-Sendfile: /etc/passwd\r\nX-Sendfile2: /etc/passwd 0-\r\nX-LIGHTTPD-send-file: "
          "/etc/passwd\r\n"
          "X-LiteSpeed-Location: /x\r\nX-Envoy-Immediate-Health-Check-Fail: 1\r\n"
          "X-Forwarded-For: 10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nX-Reproxy-URL: http://evil/\r\n"
          "Set-Login: logged-out\r\nSecure-Session-Registration: (ES256);path=\"/x\"\r\n"
          "Speculation-Rules: \"/r\"\r\nUse-As-Dictionary: match=\"/*\"\r\nRefresh: "
          "0;url=http://evil/\r\n"
          "Of-Tomorrow: 1\r\nTrailer: X-Late\r\n"
          "X-Total-Count: 3\r\nETag: \"a\"\r\nLink: </2>; rel=\"next\"\r\nMcp-Session-Id: s\r\n"
          "Content-Disposition: attachment\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  for (const char* name :
       {"x-accel-redirect", "x-accel-buffering", "x-sendfile", "x-sendfile2",
        "x-lighttpd-send-file", "x-litespeed-location", "x-envoy-immediate-health-check-fail",
        "x-forwarded-for", "x-real-ip", "x-reproxy-url", "set-login", "secure-session-registration",
        "speculation-rules", "use-as-dictionary", "refresh", "of-tomorrow", "trailer"}) {
    EXPECT_FALSE(answer.headers.contains(name)) << name;
  }
  EXPECT_EQ(answer.header("x-total-count"), "3");
  EXPECT_EQ(answer.header("etag"), "\"a\"");
  EXPECT_EQ(answer.header("link"), "</in/x/2>; rel=\"next\"");
  EXPECT_EQ(answer.header("mcp-session-id"), "s");
  EXPECT_EQ(answer.header("content-disposition"), "attachment");
}

TEST_F(RelayTest, ARedirectToTheNameThatTheServerInsideWasCalledByStaysThere) {
  const std::string own = "localhost:" + std::to_string(port_.number());
  const auto location = [&](const std::string& said) {
    return ask("GET /in/x/",
               "HTTP/1.1 302 Found\r\nLocation: " + said + "\r\nContent-Length: 0\r\n\r\n")
        .header("location");
  };
  EXPECT_EQ(location("http://" + own + "/login?next=/a"), "/in/x/login?next=/a");
  EXPECT_EQ(location("HTTP://LOCALHOST:" + std::to_string(port_.number())), "/in/x/");
  EXPECT_EQ(location("//" + own + "?q"), "/in/x/?q");
  EXPECT_EQ(location("next"), "/in/x/next");
  EXPECT_EQ(location("../../api/secrets"), "/in/x/api/secrets");
}

TEST_F(RelayTest, ReferencesThatLeadAwayFromTheServerInsideAreWithheld) {
  const std::string own = "localhost:" + std::to_string(port_.number());
  // Over TLS it would be another server; the rest are other servers in any case.
  for (const std::string& other :
       {"https://" + own + "/", "http://" + own + "@example.org/", "http://" + own + "1/",
        std::string{"http://localhost/"}, std::string{"//example.org/"},
        std::string{"\\\\example.org/"}}) {
    const Answer answer =
        ask("GET /in/x/", "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + other +
                              "\r\nHX-Redirect: " + other +
                              "\r\nX-Berth-Withheld: nothing"
                              "\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(answer.status, 307);
    EXPECT_FALSE(answer.headers.contains("location")) << other;
    EXPECT_FALSE(answer.headers.contains("hx-redirect")) << other;
    EXPECT_EQ(answer.header("x-berth-withheld"), "Location") << other;
  }
  const Answer links = ask("GET /in/x/",
                           "HTTP/1.1 200 OK\r\nLink: <https://example.org/x>; rel=preload\r\n"
                           "Content-Location: //example.org/\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(links.headers.contains("link"));
  EXPECT_FALSE(links.headers.contains("content-location"));
}

TEST_F(RelayTest, TheNameOfARequestIsGivenByThisServerAlone) {
  Client client{server_.port()};
  client.send(request("GET /in/x/", "X-Request-Id: mine-1\r\n"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  inside.send("HTTP/1.1 200 OK\r\nx-request-id: forged\r\nContent-Length: 0\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.contains("\r\nX-Request-Id: mine-1\r\n")) << head;
  EXPECT_FALSE(head.contains("forged")) << head;
}

TEST_F(RelayTest, BodiesTravelInPiecesBothWaysAtTheSameTime) {
  Client client{server_.port()};
  client.send(
      "POST /in/x/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
  Inside inside = port_.accept();
  EXPECT_TRUE(inside.read_until("\r\n\r\n").contains("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(inside.read_until("one\r\n"), "3\r\none\r\n");
  inside.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nback\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n").contains("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(client.read_until("back\r\n"), "4\r\nback\r\n") << "before the request is whole";
  client.send("3\r\ntwo\r\n0\r\n\r\n");
  EXPECT_EQ(inside.read_until("0\r\n\r\n"), "3\r\ntwo\r\n0\r\n\r\n");
  inside.send("0\r\n\r\n");
  EXPECT_EQ(client.read_all(), "0\r\n\r\n");
}

TEST_F(RelayTest, ABodyOfKnownLengthPassesWhole) {
  const std::string body(300'000, 'x');
  Client client{server_.port()};
  client.send(request("PUT /in/x/file", {}, body));
  Inside inside = port_.accept();
  EXPECT_TRUE(inside.read_until("\r\n\r\n").contains("Content-Length: 300000\r\n"));
  EXPECT_EQ(inside.read_bytes(body.size()), body);
  inside.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  EXPECT_EQ(client.read_answer().body, body);
}

TEST_F(RelayTest, AnAnswerToHeadHasALengthAndNoBody) {
  Client client{server_.port()};
  client.send(request("HEAD /in/x/"));
  Inside inside = port_.accept();
  EXPECT_TRUE(inside.read_until("\r\n\r\n").starts_with("HEAD / "));
  inside.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  const Answer answer = client.read_answer(Client::Body::absent);
  EXPECT_EQ(answer.header("content-length"), "9");
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(RelayTest, NobodyInsideIsAPlainAnswerWithARemedy) {
  Client client{server_.port()};
  const Answer answer = client.ask(request("POST /in/nobody/x", {}, "body"));
  EXPECT_EQ(answer.status, 502);
  EXPECT_TRUE(answer.body.contains("port_unreachable")) << answer.body;
  EXPECT_TRUE(answer.body.contains("start it")) << answer.body;
}

TEST_F(RelayTest, WhoMayNotCallReachesNothing) {
  Client client{server_.port()};
  EXPECT_EQ(client.ask(request("GET /in/x/", "Authorization: Bearer wrong\r\n")).status, 401);
}

TEST_F(RelayTest, WhatIsNoHttpOrCodedForTheWayIsNotPassedOn) {
  for (const std::string& said :
       {std::string{"SSH-2.0-x\r\n"}, std::string{}, std::string{"HTTP/1.1 2"},
        "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'y'),
        std::string{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
        std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
                    "\r\n0\r\n\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx"},
        std::string{
            "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"}}) {
    const Answer answer = ask("GET /in/x/", said);
    EXPECT_EQ(answer.status, 502) << said.substr(0, 60);
    EXPECT_TRUE(answer.body.contains("port_unreachable")) << answer.body;
  }
}

TEST_F(RelayTest, AnEndlessHeadIsCutAtItsLimit) {
  Client client{server_.port()};
  client.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  inside.send("HTTP/1.1 200 OK\r\n");
  std::size_t sent = 0;
  while (sent < (std::size_t{64} << 20) && inside.send("X-Y: z\r\n")) sent += 8;
  EXPECT_LT(sent, std::size_t{64} << 20) << "it was read without an end";
  EXPECT_EQ(client.read_answer().status, 502);
}

TEST_F(HurriedRelayTest, AHeadThatTricklesIsNotWaitedForForEver) {
  Client client{server_.port()};
  client.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  std::string_view head = "HTTP/1.1 200 OK\r\nX-Slow: ";
  int rounds = 0;
  for (; rounds < 500 && inside.send(head.empty() ? "y" : head.substr(0, 1)); ++rounds) {
    if (!head.empty()) head.remove_prefix(1);
    ::poll(nullptr, 0, 20);  // sends slowly, which is what this test checks
  }
  EXPECT_LT(rounds, 500);
  EXPECT_EQ(client.read_answer().status, 502);
}

TEST_F(HurriedRelayTest, AnEndlessBodyIsReadOnlyAsFastAsTheClientTakesIt) {
  Client client{server_.port()};
  client.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  inside.send("HTTP/1.1 200 OK\r\n\r\n");
  const std::string megabyte(1 << 20, 'x');
  std::size_t sent = 0;
  // The client does not read, so the kernel's buffers fill and the relay times out.
  while (sent < 256 && inside.send(megabyte)) ++sent;
  EXPECT_LT(sent, 256U) << "megabytes were taken for a client that reads none";
}

TEST_F(RelayTest, AnAnswerThatIsCutShortIsNotMadeToLookWhole) {
  const Answer length = ask("GET /in/x/", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(length.body, "abc") << "and then the connection ended";
  Client client{server_.port()};
  client.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  inside.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nd");
  inside.close();
  const std::string all = client.read_all();
  EXPECT_TRUE(all.contains("abc")) << all;
  EXPECT_FALSE(all.ends_with("0\r\n\r\n")) << all;
}

TEST_F(RelayTest, AnEarlyAnswerComesThroughThoughTheBodyIsNotTaken) {
  Client client{server_.port()};
  client.send("POST /in/x/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nsome");
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  inside.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
  inside.close();
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body, "no");
}

TEST_F(RelayTest, WhatFollowsARequestOnTheConnectionIsNotServed) {
  Client client{server_.port()};
  client.send(request("GET /in/x/") + request("GET /in/x/second"));
  Inside inside = port_.accept();
  EXPECT_EQ(inside.read_until("\r\n\r\n").find("second"), std::string::npos);
  inside.send(
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\n"
      "Content-Length: 4\r\n\r\nevil");
  const std::string all = client.read_all();
  EXPECT_TRUE(all.ends_with("\r\n\r\n1")) << all;
  EXPECT_TRUE(all.contains("Connection: close\r\n")) << all;
}

TEST_F(RelayTest, AClientThatSendsNoMoreIsAnsweredAllTheSame) {
  Client client{server_.port()};
  client.send(request("POST /in/x/", {}, "body"));
  client.end_of_sending();
  Inside inside = port_.accept();
  EXPECT_TRUE(inside.read_until("body").ends_with("\r\n\r\nbody"));
  inside.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nans");
  EXPECT_TRUE(client.read_until("ans").ends_with("\r\n\r\nans"));
  inside.send("wer");
  EXPECT_EQ(client.read_all(), "wer");
}

TEST_F(RelayTest, AClientThatBreaksOffAfterItsLastByteIsNoticedAtOnce) {
  Client client{server_.port()};
  client.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  client.end_of_sending();
  // These bytes are relayed after the client's end of input was seen.
  inside.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nans");
  EXPECT_TRUE(client.read_until("ans").ends_with("\r\n\r\nans"));
  const auto since = std::chrono::steady_clock::now();
  client.break_off();
  EXPECT_TRUE(inside.ends());
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds{5});
}

TEST_F(HurriedRelayTest, AClientThatGoesIsNoticedInside) {
  Client client{server_.port()};
  client.send(request("GET /in/x/"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  client.close();
  EXPECT_TRUE(inside.ends());
}

TEST_F(RelayTest, AWebSocketPassesInBothDirections) {
  Client client{server_.port()};
  client.send(request("GET /in/x/ws",
                      "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: k\r\n"));
  Inside inside = port_.accept();
  const std::string seen = inside.read_until("\r\n\r\n");
  EXPECT_TRUE(seen.contains("\r\nUpgrade: websocket\r\n")) << seen;
  EXPECT_TRUE(seen.contains("\r\nSec-WebSocket-Key: k\r\n")) << seen;
  inside.send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: a\r\n\r\nearly;");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 ")) << head;
  EXPECT_TRUE(head.contains("\r\nSec-WebSocket-Accept: a\r\n")) << head;
  EXPECT_EQ(client.read_until(";"), "early;");
  client.send("to inside;");
  EXPECT_EQ(inside.read_until(";"), "to inside;");
  inside.send("to client;");
  EXPECT_EQ(client.read_until(";"), "to client;");
  inside.close();
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(RelayTest, ASwitchToAnotherProtocolThanTheOneAskedForIsRefused) {
  Client client{server_.port()};
  client.send(request("GET /in/x/", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  inside.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 502);
  // A request that is not for a WebSocket is not relayed at all.
  Client other{server_.port()};
  other.send(request("GET /in/x/", "Connection: Upgrade\r\nUpgrade: h2c\r\n"));
  Inside second = port_.accept();
  EXPECT_FALSE(second.read_until("\r\n\r\n").contains("Upgrade"));
}

TEST_F(RelayTest, MoreThanTheLimitAreTurnedAway) {
  std::vector<Client> clients;
  std::vector<Inside> held;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server_.port()).send(request("GET /in/x/"));
    held.push_back(port_.accept());
    held.back().read_until("\r\n\r\n");
    held.back().send("HTTP/1.1 200 OK\r\n\r\n");
    EXPECT_TRUE(clients.back().read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
  }
  Client one_more{server_.port()};
  EXPECT_EQ(one_more.ask(request("GET /in/x/")).status, 503);
}

TEST_F(RelayTest, ADrainingServerEndsTunnels) {
  Client client{server_.port()};
  client.send(request("GET /in/x/", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  Inside inside = port_.accept();
  inside.read_until("\r\n\r\n");
  inside.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101"));
  server_.begin_drain(milliseconds{10'000});
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(inside.read_until("never"), "");
  server_.join();
}

}  // namespace
}  // namespace berth::http
