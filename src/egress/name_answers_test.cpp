#include "egress/name_answers.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

constexpr std::uint16_t type_aaaa = 28;
constexpr std::uint16_t type_https = 65;

std::string query_for(std::string_view name, std::uint16_t type = DnsQuery::type_a,
                      std::uint16_t klass = DnsQuery::class_internet) {
  std::string out{"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12};
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    out += static_cast<char>(label.size());
    out += label;
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  out += '\0';
  for (const unsigned number : {unsigned{type}, unsigned{klass}}) {
    out += static_cast<char>(number >> 8U);
    out += static_cast<char>(number);
  }
  return out;
}

class EgressNames : public testing::Test {
 protected:
  // The code, and the address if there is one: "0 198.18.1.0", "3".
  std::string ask(const std::string& datagram) {
    const auto response = answers_.answer(datagram);
    if (!response) return "silence";
    std::string out = std::to_string((*response)[3] & 0xf);
    if ((*response)[7] == 0) return out;
    Address address;
    std::copy(response->end() - 4, response->end(), address.bytes.begin());
    return out + " " + address.str();
  }
  void allow(std::vector<std::string> rules, std::vector<std::string> deny = {}) {
    policy_ = *Policy::parse({.allow = std::move(rules), .deny = std::move(deny), .log = {}});
  }

  Policy policy_;
  std::vector<LogEntry> noted_;
  SyntheticNames names_{4};

 private:
  SystemClock clock_;
  NameAnswers answers_{names_,
                       clock_,
                       {.decide = [this](const auto& name) { return policy_.decide_name(name); },
                        .note = [this](LogEntry entry) { noted_.push_back(std::move(entry)); }}};
};

TEST_F(EgressNames, ANameThatAnyRuleAllowsGetsItsAddress) {
  allow({"api.example.test:8443", "*.example.net"});
  EXPECT_EQ(ask(query_for("api.example.test")), "0 198.18.1.0");
  EXPECT_EQ(ask(query_for("API.Example.TEST")), "0 198.18.1.0");
  EXPECT_EQ(ask(query_for("a.b.example.net")), "0 198.18.1.1");
  EXPECT_EQ(*names_.name_of(*Address::parse("198.18.1.0")), "api.example.test");
  EXPECT_TRUE(noted_.empty());
}

TEST_F(EgressNames, OtherRecordsOfItAreAbsent) {
  allow({"api.example.test"});
  EXPECT_EQ(ask(query_for("api.example.test", type_aaaa)), "0");
  EXPECT_EQ(ask(query_for("api.example.test", type_https)), "0");
  EXPECT_EQ(ask(query_for("api.example.test", DnsQuery::type_a, 3)), "5");
  EXPECT_EQ(names_.size(), 0U);
}

TEST_F(EgressNames, ADeniedNameDoesNotExistAndIsWrittenDownOnce) {
  allow({"*"}, {"tracker.test"});
  EXPECT_EQ(ask(query_for("tracker.test")), "3");
  EXPECT_EQ(ask(query_for("tracker.test", type_aaaa)), "3");
  ASSERT_EQ(noted_.size(), 1U);
  EXPECT_EQ(noted_[0].method, "DNS");
  EXPECT_EQ(noted_[0].host, "tracker.test");
  EXPECT_EQ(noted_[0].decision, Outcome::denied);
  EXPECT_EQ(noted_[0].rule, "egress.deny[0] 'tracker.test'");
  allow({"10.0.0.0/8"});
  EXPECT_EQ(ask(query_for("any.test")), "3");
  EXPECT_EQ(noted_.back().rule, "default");
  EXPECT_EQ(names_.size(), 0U);
}

TEST_F(EgressNames, LocalhostIsTheWorkerItself) {
  EXPECT_EQ(ask(query_for("localhost")), "0 127.0.0.1");
  EXPECT_EQ(ask(query_for("x.localhost")), "0 127.0.0.1");
  EXPECT_EQ(ask(query_for("localhost", type_aaaa)), "0");
  EXPECT_EQ(ask(query_for("notlocalhost")), "3");
}

TEST_F(EgressNames, ReservedAndStrangeNamesDoNotExist) {
  allow({"*"});
  for (const std::string name : {"berth.internal", "x.berth.internal", "a b.test", "-a.test",
                                 "1.2.3.4", "0x7f.1", "\xff\xfe.test", ""}) {
    EXPECT_EQ(ask(query_for(name)), "3") << name;
  }
  EXPECT_EQ(noted_.size(), 8U);
  EXPECT_EQ(noted_[6].host, "??.test");
  EXPECT_EQ(ask("too short"), "silence");
  EXPECT_EQ(ask(std::string(12, '\0')), "1");
}

TEST_F(EgressNames, NoNameIsLookedUpWhileAllAddressesAreInUse) {
  allow({"*"});
  std::vector<std::shared_ptr<const std::string>> held;
  for (const std::string name : {"a.test", "b.test", "c.test", "d.test"}) {
    held.push_back(names_.name_of(*names_.address_of(name)));
  }
  EXPECT_EQ(ask(query_for("e.test")), "2");
  held.clear();
  EXPECT_EQ(ask(query_for("e.test")), "0 198.18.1.4");
}

}  // namespace
}  // namespace berth::egress
