#include "http/server/message/reader.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

enum class Pieces { whole, bytes };

// Feeds like a session: unused bytes are offered again with those that follow.
Result<Request> read_request(std::string_view bytes, Pieces pieces = Pieces::whole,
                             Limits limits = {}) {
  Request request;
  RequestReader reader{request, limits};
  std::string inbox;
  std::size_t sent = 0;
  bool limited = false;
  while (reader.stage() != RequestReader::Stage::done) {
    if (reader.stage() == RequestReader::Stage::body && !std::exchange(limited, true)) {
      BERTH_DO(reader.limit_body(limits.body_bytes_max));
    }
    BERTH_TRY(const std::size_t used, reader.feed(inbox));
    inbox.erase(0, used);
    if (used > 0) continue;
    if (sent == bytes.size()) return fail(Errc::cancelled, "the bytes are used up");
    const std::size_t size = pieces == Pieces::whole ? bytes.size() : 1;
    inbox += bytes.substr(sent, size);
    sent += size;
  }
  return request;
}

TEST(Reader, ReadsTheSameRequestWholeAndByteByByte) {
  constexpr std::string_view text =
      "\r\nPOST /x?y=1 HTTP/1.1\r\nHost: h\r\nContent-Type: Application/JSON; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n"
      "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nAuthorization: trailer\r\n\r\n";
  for (const Pieces pieces : {Pieces::whole, Pieces::bytes}) {
    const auto request = read_request(text, pieces);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->verb, Verb::post);
    EXPECT_EQ(request->body, "abcde");
    EXPECT_EQ(request->content_type, "application/json");
    EXPECT_EQ(request->header("HOST"), "h");
    EXPECT_FALSE(request->header("authorization")) << "a trailer must not pass for a header";
  }
}

TEST(Reader, RefusesWhatTwoParsersCouldReadDifferently) {
  const std::string line = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::vector<std::string> attempts = {
      line + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      line + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
      line + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
      line + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      line + "Content-Length: 3, 3\r\n\r\nabc",
      line + "Content-Length: +3\r\n\r\nabc",
      line + "Content-Length: -1\r\n\r\n",
      line + "Content-Length: 0x3\r\n\r\nabc",
      line + "Content-Length: 99999999999999999999\r\n\r\n",
      line + "Content-Length: \r\n\r\n",
      line + "Content-Length : 3\r\n\r\nabc",
      line + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      line + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
      line + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      line + "Transfer-Encoding: identity\r\n\r\n",
      line + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      line + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
      line + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
      line + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nBad Name: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nX: a\x01b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\n: empty\r\n\r\n",
      std::string{"GET / HTTP/1.1\r\nHost: h\0h\r\n\r\n", 29},
      "\x16\x03\x01\x02 is TLS, no HTTP\r\n\r\n",
  };
  for (const std::string& attempt : attempts) {
    for (const Pieces pieces : {Pieces::whole, Pieces::bytes}) {
      const auto request = read_request(attempt, pieces);
      ASSERT_FALSE(request) << attempt;
      EXPECT_EQ(name_of(request.error().code), "bad_request") << attempt;
    }
  }
}

TEST(Reader, RefusesFoldedHeaderLines) {
  for (const char* blank : {" ", "\t"}) {
    const std::string text =
        "GET / HTTP/1.1\r\nHost: h\r\nX-Long: one\r\n" + std::string{blank} + "two\r\n\r\n";
    for (const Pieces pieces : {Pieces::whole, Pieces::bytes}) {
      const auto request = read_request(text, pieces);
      ASSERT_FALSE(request) << text;
      EXPECT_EQ(request.error().code, Errc::bad_request);
      EXPECT_TRUE(request.error().message.contains("folded")) << request.error().message;
    }
  }
}

TEST(Reader, BareLineFeedsEndNoLine) {
  EXPECT_FALSE(read_request("GET / HTTP/1.1\nHost: h\n\n", Pieces::whole));
  EXPECT_FALSE(read_request("GET / HTTP/1.1\nHost: h\n\n", Pieces::bytes));
  EXPECT_FALSE(read_request("GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", Pieces::whole));
}

TEST(Reader, AnEmptyChunkedBodyMayComeInAnyPieces) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n";
  EXPECT_TRUE(read_request(text, Pieces::whole));
  EXPECT_TRUE(read_request(text, Pieces::bytes));
}

TEST(Reader, LimitsHeaderBodyAndChunkHeaders) {
  const Limits small{.header_bytes_max = 256, .body_bytes_max = 8};
  const std::string line = "POST / HTTP/1.1\r\nHost: h\r\n";
  for (const Pieces pieces : {Pieces::whole, Pieces::bytes}) {
    const auto code = [&](const std::string& text) {
      return read_request(text, pieces, small).error().code;
    };
    EXPECT_EQ(code(line + "X: " + std::string(300, 'x') + "\r\n\r\n"), Errc::header_too_large);
    EXPECT_EQ(code("GET /" + std::string(300, 'x') + " HTTP/1.1\r\n"), Errc::header_too_large);
    std::string many = line;
    while (many.size() < 300) many += "A: b\r\n";
    EXPECT_EQ(code(many + "\r\n"), Errc::header_too_large);
    EXPECT_EQ(code(line + "Content-Length: 9\r\n\r\n123456789"), Errc::body_too_large);
    EXPECT_EQ(
        code(line + "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n5\r\n12345\r\n0\r\n\r\n"),
        Errc::body_too_large);
    EXPECT_EQ(code(line + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(400, 'x')),
              Errc::bad_request);
    EXPECT_EQ(code(line + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(400, 'x')),
              Errc::bad_request);
    EXPECT_TRUE(read_request(line + "Content-Length: 8\r\n\r\n12345678", pieces, small));
  }
}

}  // namespace
}  // namespace berth::http
