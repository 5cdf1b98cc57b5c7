#include "egress/dns_message.hpp"

#include <gtest/gtest.h>

namespace berth::egress {
namespace {

std::string bytes_of(std::string_view hex) {
  std::string out;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    out += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return out;
}

// What glibc's getaddrinfo sends for the IPv4 address of api.example.test.
constexpr std::string_view glibc_query =
    "1234 0100 0001 0000 0000 0000 03617069 076578616d706c65 0474657374 00 0001 0001";
// What dig sends for Api.Example.TEST, with EDNS and a cookie.
constexpr std::string_view dig_query =
    "beef 0120 0001 0000 0000 0001 03417069 074578616d706c65 0454455354 00 0001 0001"
    "00 0029 04d0 00000000 000c 000a 0008 0102030405060708";

TEST(EgressDns, ReadsTheQueriesOfResolvers) {
  const Result<DnsQuery> glibc = parse_dns_query(bytes_of(glibc_query));
  ASSERT_TRUE(glibc);
  EXPECT_EQ(glibc->id, 0x1234);
  EXPECT_TRUE(glibc->wants_recursion);
  EXPECT_FALSE(glibc->extended);
  EXPECT_EQ(glibc->name, "api.example.test");
  EXPECT_EQ(glibc->type, DnsQuery::type_a);
  EXPECT_EQ(glibc->klass, DnsQuery::class_internet);
  const Result<DnsQuery> dig = parse_dns_query(bytes_of(dig_query));
  ASSERT_TRUE(dig);
  EXPECT_TRUE(dig->extended);
  EXPECT_EQ(dig->name, "Api.Example.TEST");
}

TEST(EgressDns, AnswersWithTheQuestionAsItCame) {
  const DnsQuery query = *parse_dns_query(bytes_of(dig_query));
  const std::string found =
      dns_response(query, DnsCode::no_error, Address::parse("198.18.1.0"), 30);
  EXPECT_EQ(found,
            bytes_of("beef 8180 0001 0001 0000 0001 03417069 074578616d706c65 0454455354 00 0001 "
                     "0001 c00c 0001 0001 0000001e 0004 c6120100 00 0029 04d0 00000000 0000"));
  const DnsQuery plain = *parse_dns_query(bytes_of(glibc_query));
  EXPECT_EQ(dns_response(plain, DnsCode::no_such_name, std::nullopt, 30),
            bytes_of("1234 8183 0001 0000 0000 0000 03617069 076578616d706c65 0474657374 00 0001 "
                     "0001"));
}

TEST(EgressDns, RefusesWhatIsNotOnePlainQuestion) {
  for (const std::string_view hex : {
           "",
           "1234",
           "1234 0100 0001 0000 0000 00",
           "1234 0100 0000 0000 0000 0000",
           "1234 0100 0002 0000 0000 0000 0161 00 0001 0001 0162 00 0001 0001",
           "1234 0100 0001 0001 0000 0000 0161 00 0001 0001",
           "1234 0100 0001 0000 0001 0000 0161 00 0001 0001",
           "1234 0100 0001 0000 0000 0002 0161 00 0001 0001",
           "1234 0100 0001 0000 0000 0000",                        // no question
           "1234 0100 0001 0000 0000 0000 0161",                   // an unterminated name
           "1234 0100 0001 0000 0000 0000 0561 00 0001 0001",      // a label past the end
           "1234 0100 0001 0000 0000 0000 0161 00 0001",           // no class
           "1234 0100 0001 0000 0000 0000 c00c 0001 0001",         // points to itself
           "1234 0100 0001 0000 0000 0000 4161 00 0001 0001",      // an extended label
           "1234 0100 0001 0000 0000 0000 03612e62 00 0001 0001",  // "a.b" as one label
           "1234 0100 0001 0000 0000 0000 0161 00 0001 0001 00",   // has trailing bytes
           "1234 0100 0001 0000 0000 0001 0161 00 0001 0001",      // EDNS is missing
           "1234 0100 0001 0000 0000 0001 0161 00 0001 0001 00 0001 0001 00000000 0000",
           "1234 0100 0001 0000 0000 0001 0161 00 0001 0001 00 0029 04d0 00000000 0004 0000",
       }) {
    const Result<DnsQuery> query = parse_dns_query(bytes_of(hex));
    EXPECT_FALSE(query) << hex;
    const auto rejection = dns_rejection(bytes_of(hex));
    EXPECT_EQ(rejection.has_value(), bytes_of(hex).size() >= 12) << hex;
    if (rejection) EXPECT_EQ(*rejection, bytes_of("1234 8101 0000 0000 0000 0000")) << hex;
  }
}

TEST(EgressDns, NeverAnswersAResponse) {
  std::string response = bytes_of(glibc_query);
  response[2] = static_cast<char>(0x81);
  EXPECT_FALSE(parse_dns_query(response));
  EXPECT_FALSE(dns_rejection(response));
}

TEST(EgressDns, RejectsOtherOperationsAsNotImplemented) {
  const std::string update = bytes_of("1234 2800 0001 0000 0000 0000 0161 00 0006 0001");
  EXPECT_FALSE(parse_dns_query(update));
  EXPECT_EQ(dns_rejection(update), bytes_of("1234 a804 0000 0000 0000 0000"));
}

TEST(EgressDns, LimitsNamesAndDatagrams) {
  const auto query = [](std::size_t labels) {
    std::string out = bytes_of("1234 0100 0001 0000 0000 0000");
    for (std::size_t i = 0; i < labels; ++i) out += "\x3f" + std::string(63, 'a');
    return out + bytes_of("00 0001 0001");
  };
  EXPECT_TRUE(parse_dns_query(query(3)));
  EXPECT_FALSE(parse_dns_query(query(4)));
  EXPECT_FALSE(parse_dns_query(query(100)));
  EXPECT_FALSE(parse_dns_query(std::string(dns_query_bytes_max + 1, '\0')));
}

}  // namespace
}  // namespace berth::egress
