#include "egress/message.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
using namespace std::string_literals;
namespace {

Result<RequestHead> parse(const std::string& text) {
  HeadEnd end;
  BERTH_TRY(const auto size, end.find(text));
  if (size != text.size()) return fail(Errc::bad_request, "the head does not end where it should");
  return parse_request_head(text);
}

const std::string line = "GET http://a.test/ HTTP/1.1\r\n";

TEST(EgressHead, IsTakenApart) {
  const auto head = parse("POST http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nA:  b c \t\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "http://a.test/x?y");
  EXPECT_EQ(head->fields.find("HOST"), "a.test");
  EXPECT_EQ(head->fields.find("a"), "b c");
}

TEST(EgressHead, EndsWhereItsEmptyLineEnds) {
  const std::string text = line + "Host: a.test\r\n\r\nbody";
  HeadEnd end;
  for (std::size_t size = 0; size < text.size() - 4; ++size) {
    const auto found = end.find(std::string_view{text}.substr(0, size));
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->has_value()) << size;
  }
  EXPECT_EQ(end.find(text)->value(), text.size() - 4);
}

TEST(EgressHead, RefusesWhatTwoParsersReadDifferently) {
  for (const std::string& text : {"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n"s,
                                  line + "Host: a.test\n\r\n",
                                  line + "Host: a.test\r\r\n\r\n",
                                  line + "Host: a.test\rX: y\r\n\r\n",
                                  line + "Host : a.test\r\n\r\n",
                                  line + "Host\t: a.test\r\n\r\n",
                                  line + "Host: a.test\r\n b.test\r\n\r\n",
                                  line + "Host: a.test\r\n\tb.test\r\n\r\n",
                                  line + " Host: a.test\r\n\r\n",
                                  line + "Ho st: a.test\r\n\r\n",
                                  line + ": a\r\n\r\n",
                                  line + "nothing\r\n\r\n",
                                  line + "A: \x01\r\n\r\n",
                                  line + "A: \x7f\r\n\r\n",
                                  line + "A: a"s + '\0' + "b\r\n\r\n",
                                  "\r\n" + line + "\r\n",
                                  "GET  http://a.test/ HTTP/1.1\r\n\r\n"s,
                                  "GET http://a.test/  HTTP/1.1\r\n\r\n"s,
                                  "GET http://a.test/ b HTTP/1.1\r\n\r\n"s,
                                  "GET\thttp://a.test/ HTTP/1.1\r\n\r\n"s,
                                  "GET http://a.test/\xc3\xa9 HTTP/1.1\r\n\r\n"s,
                                  "GET http://a.test/ HTTP/2.0\r\n\r\n"s,
                                  "GET http://a.test/ HTTP/1.1 \r\n\r\n"s,
                                  "GET http://a.test/ http/1.1\r\n\r\n"s,
                                  "GET http://a.test/ HTTP/1.12\r\n\r\n"s,
                                  "GET http://a.test/\r\n\r\n"s,
                                  "GET\r\n\r\n"s,
                                  "G(T http://a.test/ HTTP/1.1\r\n\r\n"s,
                                  " GET http://a.test/ HTTP/1.1\r\n\r\n"s}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

TEST(EgressHead, HasAFieldCountLimit) {
  std::string text = line;
  for (int i = 0; i < 129; ++i) text += "A: b\r\n";
  const auto head = parse(text + "\r\n");
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().code, Errc::header_too_large);
}

TEST(EgressHead, KeepsOnlyWhatGoesEndToEnd) {
  const auto head = parse(line +
                          "Host: a.test\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nX-End: 2\r\n"
                          "Proxy-Authorization: secret\r\nProxy-Connection: keep-alive\r\n"
                          "TE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\n\r\n");
  ASSERT_TRUE(head);
  const Fields kept = head->fields.end_to_end();
  EXPECT_EQ(kept.size(), 2U);
  EXPECT_TRUE(kept.find("host"));
  EXPECT_TRUE(kept.find("x-end"));
}

TEST(EgressFraming, IsRefusedWhenItIsNotClear) {
  for (const char* fields :
       {"Content-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 3, 3\r\n",
        "Content-Length: -3\r\n", "Content-Length: +3\r\n", "Content-Length: 0x3\r\n",
        "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n", "Connection: content-length\r\nContent-Length: 3\r\n",
        "Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n",
        "Connection: host\r\nHost: a.test\r\n"}) {
    const auto head = parse(line + fields + "\r\n");
    ASSERT_TRUE(head) << fields;
    EXPECT_FALSE(framing_of(*head)) << fields;
  }
  EXPECT_FALSE(framing_of(*parse("POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")));
}

TEST(EgressFraming, OfAnAnswerDependsOnTheRequest) {
  const auto answer = [](const std::string& text) { return *parse_response_head(text); };
  const auto plain = answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(framing_of(plain, "GET")->kind, Framing::Kind::length);
  EXPECT_EQ(framing_of(plain, "HEAD")->kind, Framing::Kind::none);
  EXPECT_EQ(framing_of(answer("HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n"), "GET")->kind,
            Framing::Kind::none);
  EXPECT_EQ(framing_of(answer("HTTP/1.1 200\r\n\r\n"), "GET")->kind, Framing::Kind::until_close);
  for (const char* wrong : {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "200 OK\r\n\r\n",
                            "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n"}) {
    EXPECT_FALSE(parse_response_head(wrong)) << wrong;
  }
}

// The whole content of a chunked body that arrives in pieces of this size; the rest goes to `over`.
Result<std::string> unchunked(std::string_view bytes, std::size_t piece, std::string& over) {
  BodyReader reader{{.kind = Framing::Kind::chunked}};
  std::string inbox;
  std::string content;
  while (!reader.done()) {
    BERTH_TRY(const BodyPiece got, reader.take(inbox));
    content += got.content;
    inbox.erase(0, got.used);
    if (got.used > 0) continue;
    if (bytes.empty()) return fail(Errc::bad_request, "cut");
    inbox += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  over = inbox + std::string{bytes};
  return content;
}

TEST(EgressBody, IsTheSameInWhateverPiecesItArrives) {
  const std::string bytes =
      "5\r\nhello\r\n00a;x=\"y\"\r\n, world.\r\n\r\n0\r\nTrail: er\r\n\r\nGET";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    std::string over;
    const auto content = unchunked(bytes, piece, over);
    ASSERT_TRUE(content) << piece << " " << content.error().message;
    EXPECT_EQ(*content, "hello, world.\r\n");
    EXPECT_EQ(over, "GET");
  }
}

TEST(EgressBody, RefusesChunksThatAreNotWellFormed) {
  for (const char* bytes :
       {"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhelloX0\r\n\r\n", "-5\r\nhello",
        "+5\r\nhello\r\n", "0x5\r\nhello\r\n", " 5\r\nhello\r\n", "5 \r\nhello\r\n", "\r\nhello",
        "g\r\nhello", "fffffffffffffffff\r\n", "ffffffffffffffff\r\n", "5\rhello", ";x\r\nhello",
        "5\r\nhel\r\n0\r\n\r\nXXXXXXX", "5;\x01\r\nhello\r\n0\r\n\r\n"}) {
    std::string over;
    EXPECT_FALSE(unchunked(bytes, 1, over)) << bytes;
    EXPECT_FALSE(unchunked(bytes, 100, over)) << bytes;
  }
  std::string over;
  EXPECT_FALSE(unchunked("1;" + std::string(1000, 'x') + "\r\n", 7, over));
  std::string trailer = "0\r\n";
  for (int i = 0; i < 1000; ++i) trailer += "Name: value\r\n";
  EXPECT_FALSE(unchunked(trailer + "\r\n", 64, over));
}

TEST(EgressBody, OfAStatedLengthIsExactlyThatLong) {
  BodyReader reader{{.kind = Framing::Kind::length, .length = 5}};
  EXPECT_EQ(reader.take("hel")->used, 3U);
  EXPECT_FALSE(BodyReader{reader}.end());
  EXPECT_EQ(reader.take("loGET")->content, "lo");
  EXPECT_TRUE(reader.done());
  EXPECT_TRUE(reader.end());
}

}  // namespace
}  // namespace berth::egress
