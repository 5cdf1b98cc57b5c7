#include "egress/policy.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

Policy policy(std::vector<std::string> allow, std::vector<std::string> deny = {}) {
  const Result<Policy> parsed =
      Policy::parse({.allow = std::move(allow), .deny = std::move(deny), .log = {}});
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed.value_or(Policy{});
}

Target target(std::string_view text) {
  const Result<Target> parsed = parse_target(text, std::nullopt);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(Target{});
}

Decision decide(const Policy& with, std::string_view to) {
  return with.decide(target(to));
}

Decision decide(const Policy& with, std::string_view to, std::string_view address) {
  return with.decide(target(to), *Address::parse(address));
}

TEST(EgressTarget, IsNormalised) {
  EXPECT_EQ(target("Example.ORG.:443").str(), "example.org:443");
  EXPECT_EQ(target("XN--BCHER-KVA.example:80").host, "xn--bcher-kva.example");
  EXPECT_EQ(target("[2001:DB8:0:0::1]:443").str(), "[2001:db8::1]:443");
  EXPECT_EQ(target("192.0.2.1:80").authority(), "192.0.2.1");
  EXPECT_EQ(parse_target("example.org", 80)->authority(), "example.org");
}

TEST(EgressTarget, RefusesWhatCouldBeReadInTwoWays) {
  for (const std::string_view text : {"",
                                      ":443",
                                      "host",
                                      "host:",
                                      "host:0",
                                      "host:65536",
                                      "host:080",
                                      "host:+80",
                                      "host:80:80",
                                      "user@host:443",
                                      "good.example:443@evil.example:443",
                                      "good.example:443@evil.example",
                                      "[::1:443",
                                      "[::1]443",
                                      "[::1%25lo]:443",
                                      "[::1%lo]:443",
                                      "[127.0.0.1]:443",
                                      "[::ffff:127.0.0.1]:443",
                                      "[::ffff:7f00:1]:443",
                                      "::1:443",
                                      "2130706433:443",
                                      "0x7f000001:443",
                                      "0x7f.0.0.1:443",
                                      "0177.0.0.1:443",
                                      "127.1:443",
                                      "127.0.0.1.:443",
                                      "1.2.3.4.5:443",
                                      "host.0x10:443",
                                      "host.123:443",
                                      "b\xc3\xbc"
                                      "cher.example:443",
                                      "a..b:443",
                                      ".a:443",
                                      "a..:443",
                                      "-a.example:443",
                                      "a-.example:443",
                                      "a b:443",
                                      "a\tb:443",
                                      "a%2eb:443",
                                      "a/b:443",
                                      "a\\b:443",
                                      "a,b:443",
                                      "*.example.org:443"}) {
    EXPECT_FALSE(parse_target(text, std::nullopt)) << text;
  }
  EXPECT_FALSE(parse_target(std::string(64, 'a') + ".example:443", std::nullopt));
  std::string longest;
  while (longest.size() < 260) longest += "abcdefg.";
  EXPECT_FALSE(parse_target(longest + "example:443", std::nullopt));
  EXPECT_FALSE(parse_target(std::string_view{"a\0b:443", 7}, std::nullopt));
}

TEST(EgressPolicy, AllowsNothingUnlessToldSo) {
  const Decision decision = decide(Policy{}, "example.org:443");
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.rule, "default");
  EXPECT_EQ(decision.remedy, "add 'example.org' to egress.allow");
  EXPECT_EQ(decide(Policy{}, "example.org:8443").remedy, "add 'example.org:8443' to egress.allow");
  EXPECT_EQ(decide(Policy{}, "[2606:4700::1]:22").remedy,
            "add '[2606:4700::1/128]:22' to egress.allow");
}

TEST(EgressPolicy, MatchesNamesAndPorts) {
  struct Case {
    const char* rule;
    const char* target;
    bool allowed;
  };
  for (const Case& c : {Case{"example.org", "example.org:443", true},
                        Case{"example.org", "example.org:80", true},
                        Case{"example.org", "example.org:22", false},
                        Case{"example.org", "www.example.org:443", false},
                        Case{"example.org", "notexample.org:443", false},
                        Case{"EXAMPLE.org.", "example.ORG:443", true},
                        Case{"*.example.org", "www.example.org:443", true},
                        Case{"*.example.org", "a.b.example.org:443", true},
                        Case{"*.example.org", "example.org:443", false},
                        Case{"*.example.org", "evilexample.org:443", false},
                        Case{"*.example.org", "example.org.evil.test:443", false},
                        Case{"example.org:8443", "example.org:8443", true},
                        Case{"example.org:8443", "example.org:443", false},
                        Case{"*.example.org:22", "git.example.org:22", true},
                        Case{"*.example.org:22", "git.example.org:443", false},
                        Case{"*", "anything.test:443", true},
                        Case{"*", "anything.test:25", false},
                        Case{"*:25", "anything.test:25", true},
                        Case{"*", "8.8.8.8:443", false},
                        Case{"8.8.8.0/24", "8.8.8.8:443", true},
                        Case{"8.8.8.0/24", "8.8.9.8:443", false},
                        Case{"8.8.8.8:53", "8.8.8.8:53", true},
                        Case{"8.8.8.8:53", "8.8.8.8:443", false},
                        Case{"0.0.0.0/0", "example.org:443", false},
                        Case{"2606:4700::/32", "[2606:4700::1]:443", true},
                        Case{"[2606:4700::/32]:22", "[2606:4700::1]:22", true},
                        Case{"[2606:4700::1]:22", "[2606:4700::1]:443", false}}) {
    EXPECT_EQ(decide(policy({c.rule}), c.target).allowed, c.allowed) << c.rule << " " << c.target;
  }
}

TEST(EgressPolicy, DecidesANameBeforeItsPortIsKnown) {
  const Policy with = policy({"a.test:22", "*.b.test", "10.0.0.0/8"}, {"a.test:80", "x.b.test"});
  const Decision allowed = with.decide_name("a.test");
  EXPECT_TRUE(allowed.allowed) << allowed.reason;
  EXPECT_EQ(allowed.rule, "egress.allow[0] 'a.test:22'");
  EXPECT_TRUE(with.decide_name("y.b.test").allowed);
  EXPECT_EQ(with.decide_name("x.b.test").rule, "egress.deny[1] 'x.b.test'");
  const Decision unknown = with.decide_name("c.test");
  EXPECT_FALSE(unknown.allowed);
  EXPECT_EQ(unknown.rule, "default");
  EXPECT_EQ(unknown.remedy, "add 'c.test' or 'c.test:PORT' to egress.allow");
  EXPECT_FALSE(Policy{}.decide_name("a.test").allowed);
}

TEST(EgressPolicy, AStarOpensEveryPublicAddressAndNoSpecialOne) {
  const Policy with = policy({"*:443", "0.0.0.0/0:443", "[::/0]:443"});
  EXPECT_TRUE(decide(with, "any.test:443", "93.184.216.34").allowed);
  EXPECT_TRUE(decide(with, "any.test:443", "2606:2800:220:1::1").allowed);
  EXPECT_FALSE(decide(with, "any.test:80", "93.184.216.34").allowed);
  for (const SpecialRange& special : special_ranges()) {
    const Address& address = special.range.first;
    EXPECT_FALSE(decide(with, "any.test:443", address.str()).allowed) << special.range.str();
    const Target literal{.host = address.str(), .address = address, .port = 443};
    EXPECT_FALSE(with.decide(literal).allowed) << special.range.str();
  }
}

TEST(EgressPolicy, DenyWinsOverAllowOnEveryPort) {
  const Policy with = policy({"*.example.org", "example.org:22", "8.0.0.0/8"},
                             {"bad.example.org", "8.8.8.8", "example.org:80", "9.9.9.0/24"});
  EXPECT_TRUE(decide(with, "good.example.org:443").allowed);
  EXPECT_FALSE(decide(with, "bad.example.org:443").allowed);
  EXPECT_EQ(decide(with, "bad.example.org:443").rule, "egress.deny[0] 'bad.example.org'");
  EXPECT_TRUE(decide(with, "example.org:22").allowed);
  EXPECT_FALSE(decide(with, "8.8.8.8:443").allowed);
  EXPECT_TRUE(decide(with, "8.8.4.4:443").allowed);
  EXPECT_FALSE(decide(with, "good.example.org:443", "9.9.9.9").allowed);
  EXPECT_FALSE(decide(policy({"*.a.test"}, {"*.a.test:22", "*"}), "x.a.test:443").allowed);
}

TEST(EgressPolicy, ANameNeverOpensASpecialAddress) {
  const Policy with = policy({"*", "example.org", "0.0.0.0/0", "::/0"});
  for (const char* address :
       {"127.0.0.1", "10.0.0.1", "169.254.169.254", "169.254.0.1", "192.168.0.1", "172.16.0.1",
        "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "fe80::1",
        "fd00::1", "fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "::", "ff02::1"}) {
    const Decision decision = decide(with, "example.org:443", address);
    EXPECT_FALSE(decision.allowed) << address;
    EXPECT_TRUE(decision.rule.starts_with("special range")) << decision.rule;
  }
  EXPECT_TRUE(decide(with, "example.org:443", "93.184.216.34").allowed);
  EXPECT_TRUE(decide(with, "example.org:443", "2606:2800::1").allowed);
}

TEST(EgressPolicy, OnlyARangeWithinTheSpecialOneOpensIt) {
  struct Case {
    const char* rule;
    const char* target;
    bool allowed;
  };
  for (const Case& c :
       {Case{"127.0.0.1/32:8080", "127.0.0.1:8080", true},
        Case{"127.0.0.1/32:8080", "127.0.0.1:8081", false},
        Case{"127.0.0.1/32:8080", "127.0.0.2:8080", false},
        Case{"10.0.0.0/8", "10.1.2.3:443", true}, Case{"8.0.0.0/5", "10.1.2.3:443", false},
        Case{"0.0.0.0/0", "10.1.2.3:443", false}, Case{"169.254.0.0/16", "169.254.1.1:80", true},
        Case{"169.254.0.0/16", "169.254.169.254:80", false},
        Case{"169.254.169.254", "169.254.169.254:80", true},
        Case{"fd00::/8", "[fd00::1]:443", true}, Case{"::/0", "[fd00::1]:443", false},
        Case{"::1", "[::1]:80", true}}) {
    EXPECT_EQ(decide(policy({c.rule}), c.target).allowed, c.allowed) << c.rule << " " << c.target;
  }
}

TEST(EgressPolicy, ANameAndARangeTogetherOpenAPrivateService) {
  const Policy both = policy({"db.corp.test:5432", "10.1.0.0/16:5432"});
  const Decision decision = decide(both, "db.corp.test:5432", "10.1.2.3");
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.rule,
            "egress.allow[0] 'db.corp.test:5432' with egress.allow[1] '10.1.0.0/16:5432'");
  EXPECT_FALSE(decide(both, "db.corp.test:5432", "10.2.0.1").allowed);
  EXPECT_FALSE(decide(policy({"10.1.0.0/16"}), "db.corp.test:443", "10.1.2.3").allowed);
}

TEST(EgressPolicy, OneRefusedAddressRefusesTheName) {
  const Policy with = policy({"example.org"});
  const std::vector mixed{*Address::parse("93.184.216.34"), *Address::parse("127.0.0.1")};
  EXPECT_FALSE(with.decide(target("example.org:443"), mixed).allowed);
  EXPECT_TRUE(with.decide(target("example.org:443"), std::span{mixed}.first(1)).allowed);
}

TEST(EgressPolicy, NamesTheRulesThatOpenPrivateAddresses) {
  const auto rules = [](std::vector<std::string> allow) {
    const Result<Policy> policy =
        Policy::parse({.allow = std::move(allow), .deny = {{"10.0.0.1"}}});
    EXPECT_TRUE(policy) << policy.error().message;
    return policy->private_rules();
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(rules({"example.org", "*", "*.example.org:22", "8.8.8.8/32:53", "0.0.0.0/0", "::/0"}),
            List{});
  for (const std::string opening :
       {"127.0.0.1/32:3310", "10.0.0.0/8", "0.0.0.0", "169.254.169.254", "192.168.1.1:5432",
        "[::1]:80", "fd00::/8", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "100.64.0.1"}) {
    EXPECT_EQ(rules({"example.org", opening}), List{"egress.allow[1] '" + opening + "'"});
  }
}

TEST(EgressPolicy, SpecialRangesAreAValue) {
  const Result<Policy> bare =
      Policy::parse({.allow = {{"example.org"}}, .deny = {}, .log = {}}, {});
  EXPECT_TRUE(decide(*bare, "example.org:443", "127.0.0.1").allowed);
}

TEST(EgressPolicy, AWrongRuleIsNamedWithItsPlaceAndWhatWouldBeRight) {
  for (const char* wrong : {"",
                            " ",
                            "http://example.org",
                            "user@example.org",
                            "example.org:0",
                            "example.org:99999",
                            "exa mple.org",
                            "*example.org",
                            "a.*.org",
                            "**.org",
                            "*.",
                            "10.0.0.1/8",
                            "10.0.0.0/40",
                            "[::1",
                            "[::1]x",
                            "bücher.example",
                            "127.1",
                            "0x7f000001",
                            "2130706433",
                            "berth.internal",
                            "*.berth.internal",
                            "fe80::1%eth0",
                            "example.org/path",
                            "a.example,b.example"}) {
    const Result<Policy> parsed = Policy::parse(
        {.allow = {{"good.example", "*.good.example", wrong}}, .deny = {}, .log = {}});
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Errc::validation_failed);
    EXPECT_TRUE(parsed.error().message.starts_with("egress.allow[2] '")) << parsed.error().message;
    EXPECT_FALSE(parsed.error().remedy.empty());
    ASSERT_EQ(parsed.error().issues.size(), 1U);
    EXPECT_EQ(parsed.error().issues[0].path, "/allow/2");
    EXPECT_FALSE(parsed.error().message.contains(parsed.error().remedy)) << parsed.error().message;
  }
  const Result<Policy> many =
      Policy::parse({.allow = std::vector<std::string>(2000, "a.example"), .deny = {}, .log = {}});
  EXPECT_FALSE(many);
}

TEST(EgressPolicy, IsReadFromJson) {
  const Result<Policy> parsed = Policy::decode(
      *parse_json(R"({"allow": ["example.org"], "deny": ["10.0.0.0/8"], "log": "denied"})"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->log(), LogLevel::denied);
  EXPECT_TRUE(decide(*parsed, "example.org:443").allowed);
  EXPECT_FALSE(decide(*Policy::decode(nullptr), "example.org:443").allowed);
  for (const char* wrong : {R"({"alow": []})", R"({"allow": "x"})", R"({"allow": [1]})", "[]",
                            R"({"log": "some"})", R"({"deny": ["/"]})"}) {
    const Result<Policy> refused = Policy::decode(*parse_json(wrong));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Errc::validation_failed);
  }
}

TEST(EgressPolicy, WhatIsWrongInAConfigIsFoundThere) {
  for (const auto& [wrong, path] :
       {std::pair{R"({"deny": ["good.example", "10.0.0.1/8"]})", "/config/egress/deny/1"},
        std::pair{R"({"allow": "x"})", "/config/egress/allow"},
        std::pair{"[]", "/config/egress"}}) {
    const Result<Policy> refused = Policy::decode(*parse_json(wrong));
    ASSERT_FALSE(refused) << wrong;
    const Error told = in_config(refused.error());
    EXPECT_EQ(told.code, Errc::unprocessable);
    ASSERT_EQ(told.issues.size(), 1U) << wrong;
    EXPECT_EQ(told.issues[0].path, path);
    EXPECT_EQ(told.remedy, refused.error().remedy);
  }
}

}  // namespace
}  // namespace berth::egress
