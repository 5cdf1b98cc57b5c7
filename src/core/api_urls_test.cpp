#include "core/api_urls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TEST(OriginOf, IsSchemeHostAndPortOnly) {
  EXPECT_EQ(origin_of("https://Berth.Example:8443/app?x=1#y"), "https://berth.example:8443");
  EXPECT_EQ(origin_of("http://user:pass@host/"), "http://host");
  EXPECT_EQ(origin_of("HTTP://host:80"), "http://host");
  EXPECT_EQ(origin_of("https://host:443/"), "https://host");
  EXPECT_EQ(origin_of("https://host:80"), "https://host:80");
  EXPECT_EQ(origin_of("http://[FD00::7]:3100/x"), "http://[fd00::7]:3100");
  EXPECT_EQ(origin_of("http://[::1]"), "http://[::1]");
  EXPECT_EQ(origin_of("  http://host:3100 "), "http://host:3100");
}

TEST(OriginOf, IsNothingForWhatIsNoWebAddress) {
  for (const std::string_view url :
       {"", "host", "host:3100", "ftp://host", "http://", "http://:3100", "http://host:99999",
        "http://host:x", "http:///path", "://host", "http://a b", "javascript:alert(1)"}) {
    EXPECT_EQ(origin_of(url), std::nullopt) << url;
  }
}

TEST(HostKinds, AreToldApart) {
  for (const char* host : {"127.0.0.1", "localhost", "LOCALHOST", "::1", "[::1]"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  EXPECT_FALSE(is_loopback_host("10.0.0.1"));
  EXPECT_TRUE(is_wildcard_host("0.0.0.0"));
  EXPECT_TRUE(is_wildcard_host("::"));
  EXPECT_FALSE(is_wildcard_host("::1"));
  for (const char* host : {"169.254.1.1", "fe80::1", "FEBF::1", "fe90::2", "feaf::3%eth0"}) {
    EXPECT_TRUE(is_link_local_host(host)) << host;
  }
  for (const char* host : {"fec0::1", "fd00::1", "169.253.1.1", "fe8.example", "feed.example"}) {
    EXPECT_FALSE(is_link_local_host(host)) << host;
  }
}

TEST(PrimaryApiUrl, IsTheOriginOfThePublicUrlFirst) {
  EXPECT_EQ(primary_api_url({.public_base_url = "https://berth.example/app",
                             .allowed_hostnames = {"other"},
                             .bind_host = "127.0.0.1"}),
            "https://berth.example");
}

TEST(PrimaryApiUrl, IsTheLoopbackAddressThatIsBoundBeforeAnyAllowedName) {
  EXPECT_EQ(primary_api_url({.allowed_hostnames = {"berth.lan"}, .bind_host = "127.0.0.1"}),
            "http://127.0.0.1:3100");
  EXPECT_EQ(primary_api_url({.bind_host = "::1", .port = 9}), "http://[::1]:9");
}

TEST(PrimaryApiUrl, IsTheFirstAllowedNameThatIsNotBlank) {
  EXPECT_EQ(
      primary_api_url(
          {.allowed_hostnames = {" ", "", "berth.lan", "b"}, .bind_host = "0.0.0.0", .port = 8080}),
      "http://berth.lan:8080");
}

TEST(PrimaryApiUrl, IsTheBoundAddressUnlessThatMeansAll) {
  EXPECT_EQ(primary_api_url({.bind_host = "10.1.2.3"}), "http://10.1.2.3:3100");
  EXPECT_EQ(primary_api_url({.bind_host = "0.0.0.0"}), "http://localhost:3100");
  EXPECT_EQ(primary_api_url({.bind_host = "::"}), "http://localhost:3100");
  EXPECT_EQ(primary_api_url({.public_base_url = "not a url", .bind_host = ""}),
            "http://localhost:3100");
}

TEST(CandidateApiUrls, StandInTheirOrderEachOnce) {
  const auto urls = candidate_api_urls({
      .public_base_url = "http://public.example:3100/x",
      .allowed_hostnames = {"a.example", "public.example", "A.example", " "},
      .bind_host = "10.0.0.5",
      .interfaces = {{"10.0.0.5"}, {"192.168.1.7"}},
      .preferred_url = "http://preferred.example/path",
  });
  EXPECT_THAT(urls, ElementsAre("http://preferred.example", "http://public.example:3100",
                                "http://a.example:3100", "http://10.0.0.5:3100",
                                "http://192.168.1.7:3100"));
}

TEST(CandidateApiUrls, TakeTheSchemeOfThePublicUrl) {
  EXPECT_THAT(candidate_api_urls({.public_base_url = "https://berth.example",
                                  .allowed_hostnames = {"b.lan"},
                                  .bind_host = "0.0.0.0",
                                  .interfaces = {{"10.0.0.5"}}}),
              ElementsAre("https://berth.example", "https://b.lan:3100", "https://10.0.0.5:3100"));
}

TEST(CandidateApiUrls, HoldALoopbackBindAndNoWildcard) {
  EXPECT_THAT(candidate_api_urls({.bind_host = "127.0.0.1"}), ElementsAre("http://127.0.0.1:3100"));
  EXPECT_THAT(candidate_api_urls({.bind_host = "::", .interfaces = {{"10.0.0.5"}}}),
              ElementsAre("http://10.0.0.5:3100"));
}

TEST(CandidateApiUrls, NameTheDockerHostWhenThePublicUrlIsLoopback) {
  EXPECT_THAT(
      candidate_api_urls({.public_base_url = "http://localhost:3100", .bind_host = "0.0.0.0"}),
      ElementsAre("http://localhost:3100", "http://host.docker.internal:3100"));
  EXPECT_THAT(
      candidate_api_urls({.public_base_url = "http://berth.example", .bind_host = "0.0.0.0"}),
      Not(Contains("http://host.docker.internal:3100")));
}

TEST(CandidateApiUrls, PutIpv4FirstAndSkipWhatNobodyElseReaches) {
  const auto urls = candidate_api_urls({.bind_host = "0.0.0.0",
                                        .interfaces = {{"fd00::7"},
                                                       {"127.0.0.1"},
                                                       {"172.17.0.1", true},
                                                       {"169.254.3.4"},
                                                       {"fe80::1"},
                                                       {"192.168.1.7"},
                                                       {"::1"},
                                                       {"10.0.0.9"},
                                                       {"2001:db8::1"}}});
  EXPECT_THAT(urls, ElementsAre("http://192.168.1.7:3100", "http://10.0.0.9:3100",
                                "http://[fd00::7]:3100", "http://[2001:db8::1]:3100"));
}

TEST(CandidateApiUrls, AreThePrimaryUrlWhenThereIsNothingElse) {
  EXPECT_THAT(candidate_api_urls({.bind_host = "0.0.0.0"}), ElementsAre("http://localhost:3100"));
  EXPECT_THAT(candidate_api_urls({.bind_host = "", .preferred_url = "nonsense"}),
              ElementsAre("http://localhost:3100"));
}

}  // namespace
}  // namespace berth::core
