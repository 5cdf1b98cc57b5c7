#include "http/server/assets.hpp"

#include "http/server/bearer_gate.hpp"

#include "support/http.hpp"

#include <array>

namespace berth::http {
namespace {

using http_test::Answer;
using http_test::Client;
using http_test::TestServer;

constexpr std::array<Asset, 2> files{{
    {"/", "text/html", "\"page\"", "<h1>", "gzip of page", "br of page", "'sha256-s'",
     "'sha256-t'"},
    {"/assets/a-1.js", "text/javascript", "\"a\"", "run()", "gzip of a", "br of a"},
}};

class Assets : public testing::Test {
 protected:
  Answer get(const std::string& path, const std::string& fields = "") {
    return Client{server_.port()}.ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields +
                                      "\r\n");
  }

  TestServer server_{{page_route(files)}};
};

TEST_F(Assets, AreServedInTheBestCodingThatTheClientTakes) {
  EXPECT_EQ(get("/assets/a-1.js").body, "run()");
  EXPECT_EQ(get("/assets/a-1.js", "Accept-Encoding: gzip\r\n").body, "gzip of a");
  const Answer best = get("/assets/a-1.js", "Accept-Encoding: gzip, deflate, br;q=0.9\r\n");
  EXPECT_EQ(best.body, "br of a");
  EXPECT_EQ(best.header("content-encoding"), "br");
  EXPECT_EQ(best.header("vary"), "Accept-Encoding");
}

TEST_F(Assets, WithAHashInTheirNameAreKeptForEverAndThePageIsAskedForAgain) {
  EXPECT_EQ(get("/assets/a-1.js").header("cache-control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(get("/").header("cache-control"), "no-cache");
  const Answer same = get("/", "If-None-Match: \"page\"\r\n");
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
}

TEST_F(Assets, ComeWithAPolicyThatAllowsNothingInlineButByItsHash) {
  const std::string page = get("/").header("content-security-policy");
  EXPECT_TRUE(
      page.contains("default-src 'none'; script-src 'self' 'sha256-s'; "
                    "style-src 'self' 'sha256-t'; "))
      << page;
  EXPECT_FALSE(page.contains("unsafe")) << page;
  const std::string file = get("/assets/a-1.js").header("content-security-policy");
  EXPECT_TRUE(file.contains("script-src 'self'; style-src 'self'; ")) << file;
}

TEST_F(Assets, APathOfThePageIsThePageForABrowserAndNothingForAProgram) {
  EXPECT_EQ(get("/runs/7", "Accept: text/html,*/*\r\n").body, "<h1>");
  EXPECT_EQ(get("/runs/7").status, 404);
  EXPECT_EQ(get("/assets/b-2.js", "Accept: text/html\r\n").status, 404);
  EXPECT_EQ(get("/api/runs", "Accept: text/html\r\n").status, 404);
}

TEST(AcceptEncoding, IsReadWithItsWeights) {
  EXPECT_TRUE(takes_coding("gzip, br", "br"));
  EXPECT_TRUE(takes_coding("BR;q=0.5", "br"));
  EXPECT_FALSE(takes_coding("gzip, br;q=0", "br"));
  EXPECT_FALSE(takes_coding("bro", "br"));
  EXPECT_FALSE(takes_coding("", "br"));
}

TEST(Cookies, AreFoundByTheirWholeName) {
  EXPECT_EQ(cookie_value("a=1; berth_session=key; b=2", "berth_session"), "key");
  EXPECT_EQ(cookie_value("not_berth_session=x", "berth_session"), "");
  EXPECT_EQ(cookie_value("berth_sessions=x; berth_session=", "berth_session"), "");
}

}  // namespace
}  // namespace berth::http
