#include "http/server/relay/inside_links.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

constexpr InsidePlace place{.prefix = "/in/x", .path = "/a/b?q=1", .port = 8080};

std::string read(std::string_view reference) {
  return reference_inside(reference, place).value_or("nothing");
}

TEST(InsideLinks, PathsOfTheServerInsideGetThePrefix) {
  EXPECT_EQ(read("/next?x=1#y"), "/in/x/next?x=1#y");
  EXPECT_EQ(read("next"), "/in/x/a/next");
  EXPECT_EQ(read("?page=2"), "/in/x/a/b?page=2");
  EXPECT_EQ(read("#end"), "/in/x/a/b#end");
  EXPECT_EQ(read("./c/"), "/in/x/a/c/");
  EXPECT_EQ(read("http://localhost:8080/login?next=https://example.org/"),
            "/in/x/login?next=https://example.org/");
  EXPECT_EQ(read("HTTP://LOCALHOST:8080"), "/in/x/");
  EXPECT_EQ(read("//localhost:8080?q"), "/in/x/?q");
}

TEST(InsideLinks, NoPathLeadsAboveTheServerInside) {
  for (const std::string_view way :
       {"../../../../api/secrets", "/../../api/secrets", "/%2e%2E/.%2e/api/secrets",
        "http://localhost:8080/../../api/secrets", "c/../../../api/secrets"}) {
    EXPECT_EQ(read(way), "/in/x/api/secrets") << way;
  }
  EXPECT_EQ(read(".."), "/in/x/");
  EXPECT_EQ(read("/a/.."), "/in/x/");
}

TEST(InsideLinks, OtherOriginsAndWhatBrowsersReadDifferentlyAreNothing) {
  for (const std::string_view way :
       {"https://example.org/", "//example.org/", "https://localhost:8080/",
        "http://localhost:8080@example.org/", "http://localhost:80801/", "http://localhost/",
        "\\\\example.org/", "/\\example.org", "javascript:alert(1)", "data:text/html,x",
        "ht\ttps://example.org/", " https://example.org/", "http:example.org", "\x7f"}) {
    EXPECT_EQ(read(way), "nothing") << way;
  }
}

TEST(InsideLinks, EachTargetOfALinkIsRead) {
  EXPECT_EQ(links_inside(R"(</2>; rel="next", <c>; title="a, <b>"; rel=last)", place),
            R"(</in/x/2>; rel="next", </in/x/a/c>; title="a, <b>"; rel=last)");
  for (const std::string_view field :
       {R"(</2>; rel=next, <https://example.org/x>; rel=preload)", R"(</2; rel=next)",
        R"(</2>; title="open)", R"(<//example.org>; rel=preconnect)"}) {
    EXPECT_EQ(links_inside(field, place), std::nullopt) << field;
  }
}

}  // namespace
}  // namespace berth::http
