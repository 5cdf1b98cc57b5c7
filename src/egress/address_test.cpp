#include "egress/address.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

TEST(EgressAddress, HasOneSpelling) {
  for (const char* text : {"192.0.2.1", "0.0.0.0", "2001:db8::1", "::", "::1", "fe80::1"}) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->str(), text);
  }
}

TEST(EgressAddress, IsNothingInTheSpellingsThatResolversGuess) {
  for (const char* text :
       {"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.01", "1.2.3.4.5",
        "1.2.3.256", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4.", "fe80::1%eth0", "[::1]", "::1::", "",
        "1.2.3.-4", "0x7f.0.0.1"}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
  EXPECT_FALSE(Address::parse(std::string_view{"1.2.3.4\0", 8}));
}

TEST(EgressAddress, IsPlainWhenIPv6CarriesIPv4) {
  const auto plain = [](const char* text) { return Address::parse(text)->plain().str(); };
  EXPECT_EQ(plain("::ffff:127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(plain("::ffff:0.0.0.0"), "0.0.0.0");
  EXPECT_EQ(plain("::127.0.0.1"), "127.0.0.1");
  for (const char* text : {"127.0.0.1", "::", "::1", "2001:db8::1", "64:ff9b::7f00:1"}) {
    EXPECT_EQ(plain(text), text);
  }
}

TEST(EgressRange, ContainsWhatBeginsWithItsBits) {
  struct Case {
    const char* range;
    const char* inside;
    const char* outside;
  };
  for (const Case& c :
       {Case{"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
        Case{"172.16.0.0/12", "172.31.255.255", "172.32.0.0"},
        Case{"192.0.2.4/31", "192.0.2.5", "192.0.2.6"}, Case{"192.0.2.4", "192.0.2.4", "192.0.2.5"},
        Case{"fc00::/7", "fdff::1", "fe00::"},
        Case{"2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"}}) {
    const Result<Range> range = Range::parse(c.range);
    ASSERT_TRUE(range) << c.range;
    EXPECT_TRUE(range->contains(*Address::parse(c.inside))) << c.range;
    EXPECT_FALSE(range->contains(*Address::parse(c.outside))) << c.range;
  }
  EXPECT_TRUE(Range::parse("0.0.0.0/0")->contains(*Address::parse("8.8.8.8")));
  EXPECT_FALSE(Range::parse("0.0.0.0/0")->contains(*Address::parse("::1")));
}

TEST(EgressRange, RefusesWhatNobodyCanHaveMeant) {
  for (const char* text : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1",
                           "10.0.0.0/8/8", "fe80::1/10", "::/129", "host/8", "/8", "10.0.0.0/+8"}) {
    EXPECT_FALSE(Range::parse(text)) << text;
  }
  EXPECT_NE(Range::parse("10.0.0.1/8").error().remedy.find("10.0.0.0/8"), std::string::npos);
}

TEST(EgressSpecialRanges, HoldEverythingThatIsNotThePublicInternet) {
  const auto ranges = special_ranges();
  const auto name_of_address = [&](const char* text) {
    const SpecialRange* narrowest = nullptr;
    for (const SpecialRange& special : ranges) {
      if (!special.range.contains(*Address::parse(text))) continue;
      if (narrowest == nullptr || special.range.bits >= narrowest->range.bits) narrowest = &special;
    }
    return narrowest != nullptr ? narrowest->name : "public";
  };
  struct Case {
    const char* address;
    const char* name;
  };
  for (const Case& c : {Case{"127.0.0.1", "loopback"},
                        Case{"127.255.255.254", "loopback"},
                        Case{"0.0.0.0", "unspecified"},
                        Case{"10.1.2.3", "private"},
                        Case{"172.31.0.1", "private"},
                        Case{"192.168.1.1", "private"},
                        Case{"100.64.0.1", "shared (carrier-grade NAT)"},
                        Case{"169.254.1.1", "link-local"},
                        Case{"169.254.169.254", "metadata service"},
                        Case{"100.100.100.200", "metadata service"},
                        Case{"168.63.129.16", "metadata service"},
                        Case{"fd00:ec2::254", "metadata service"},
                        Case{"224.0.0.251", "multicast"},
                        Case{"255.255.255.255", "broadcast"},
                        Case{"192.0.2.1", "documentation"},
                        Case{"198.51.100.1", "documentation"},
                        Case{"203.0.113.1", "documentation"},
                        Case{"::", "unspecified"},
                        Case{"::1", "loopback"},
                        Case{"::ffff:127.0.0.1", "IPv4 inside IPv6"},
                        Case{"::7f00:1", "IPv4 inside IPv6"},
                        Case{"64:ff9b::a00:1", "IPv4 inside IPv6 (NAT64)"},
                        Case{"2002:7f00:1::", "IPv4 inside IPv6 (6to4)"},
                        Case{"fd12:3456::1", "private"},
                        Case{"fe80::1", "link-local"},
                        Case{"ff02::1", "multicast"},
                        Case{"2001:2::1", "benchmarking"},
                        Case{"2001:db8::1", "documentation"},
                        Case{"4000::1", "reserved"},
                        Case{"8.8.8.8", "public"},
                        Case{"93.184.216.34", "public"},
                        Case{"172.32.0.1", "public"},
                        Case{"2606:4700::1111", "public"},
                        Case{"2a00:1450::1", "public"}}) {
    EXPECT_EQ(name_of_address(c.address), c.name) << c.address;
  }
}

}  // namespace
}  // namespace berth::egress
