#include "base/time.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace berth {
namespace {

constexpr std::int64_t ms_per_day = 86'400'000;
// The range of a four-digit year.
constexpr std::int64_t first_ms = -62'167'219'200'000;  // 0000-01-01T00:00:00.000Z
constexpr std::int64_t last_ms = 253'402'300'799'999;   // 9999-12-31T23:59:59.999Z

std::unexpected<Error> no_time(std::string_view text) {
  return fail(Errc::validation_failed, in_quotes(text) + " is not a time",
              "write it as 2026-11-15T02:36:53.464Z");
}

}  // namespace

std::string to_iso8601(Time at) {
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::milliseconds> point{
      std::chrono::milliseconds{std::clamp(at.ms, first_ms, last_ms)}};
  const auto day = floor<std::chrono::days>(point);
  const std::chrono::year_month_day date{day};
  const auto rest = static_cast<int>((point - day).count());
  std::string text = "0000-00-00T00:00:00.000Z";
  const auto put = [&text](std::size_t at, std::size_t digits, int number) {
    for (std::size_t i = digits; i-- > 0; number /= 10) {
      text[at + i] = static_cast<char>('0' + number % 10);
    }
  };
  put(0, 4, static_cast<int>(date.year()));
  put(5, 2, static_cast<int>(static_cast<unsigned>(date.month())));
  put(8, 2, static_cast<int>(static_cast<unsigned>(date.day())));
  put(11, 2, rest / 3'600'000);
  put(14, 2, rest / 60'000 % 60);
  put(17, 2, rest / 1000 % 60);
  put(20, 3, rest % 1000);
  return text;
}

Result<Time> parse_iso8601(std::string_view text) {
  const auto digits = [&](std::size_t at, std::size_t count) -> int {
    int value = 0;
    for (const char c : text.substr(at, count)) {
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    return value;
  };
  const auto is = [&](std::size_t at, char wanted) {
    return at < text.size() && text[at] == wanted;
  };
  if (!is(4, '-') || !is(7, '-') || !is(10, 'T') || !is(13, ':') || !is(16, ':'))
    return no_time(text);
  const bool has_ms = is(19, '.');
  if (text.size() != (has_ms ? 24U : 20U) || text.back() != 'Z') return no_time(text);

  const std::array parts{digits(0, 4),  digits(5, 2),  digits(8, 2),
                         digits(11, 2), digits(14, 2), digits(17, 2)};
  const int ms = has_ms ? digits(20, 3) : 0;
  for (const int part : parts) {
    if (part < 0 || ms < 0) return no_time(text);
  }
  const std::chrono::year_month_day date{std::chrono::year{parts[0]},
                                         std::chrono::month(static_cast<unsigned>(parts[1])),
                                         std::chrono::day(static_cast<unsigned>(parts[2]))};
  if (!date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59) return no_time(text);
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  const std::int64_t seconds = (parts[3] * 60LL + parts[4]) * 60 + parts[5];
  return Time{days * ms_per_day + seconds * 1000 + ms};
}

}  // namespace berth
