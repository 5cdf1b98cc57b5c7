#include "base/assert.hpp"
#include "egress/name_answers.hpp"

#include <cstddef>
#include <cstdint>

// One datagram from a worker.
namespace berth::egress {
namespace {

constexpr std::size_t response_bytes_max = 512;

void check_response(std::string_view datagram, std::string_view response) {
  BERTH_ASSERT(datagram.size() >= 12 && response.size() >= 12);
  BERTH_ASSERT(response.size() <= response_bytes_max);
  BERTH_ASSERT(response.substr(0, 2) == datagram.substr(0, 2));
  // A response is never answered, so that two servers cannot loop forever.
  BERTH_ASSERT((datagram[2] & 0x80) == 0 && (response[2] & 0x80) != 0);
  BERTH_ASSERT(!parse_dns_query(response) && !dns_rejection(response));
}

void check(std::string_view datagram) {
  SyntheticNames names{2};
  const SystemClock clock;
  const Policy policy =
      *Policy::parse({.allow = {{"*.test", "example.org:22"}}, .deny = {{"bad.test"}}, .log = {}});
  NameAnswers answers{names,
                      clock,
                      {.decide = [&](const std::string& name) { return policy.decide_name(name); },
                       .note = [](const LogEntry& entry) { std::ignore = encode_text(entry); }}};
  const Result<DnsQuery> query = parse_dns_query(datagram);
  const auto response = answers.answer(datagram);
  if (response) check_response(datagram, *response);
  BERTH_ASSERT(names.size() <= 1);
  if (!query) {
    BERTH_ASSERT(query.error().code == Errc::bad_request && names.size() == 0);
    return;
  }
  BERTH_ASSERT(response && response->substr(12).starts_with(query->question));
  BERTH_ASSERT(query->name.size() <= 253);
  if (names.size() == 0) return;
  const Result<std::string> name = normalised_name(query->name);
  BERTH_ASSERT(name && policy.decide_name(*name).allowed);
  const auto address = names.address_of(*name);
  BERTH_ASSERT(address && *names.name_of(*address) == *name);
}

}  // namespace
}  // namespace berth::egress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  berth::egress::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
