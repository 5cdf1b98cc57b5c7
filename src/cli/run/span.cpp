#include "cli/run/span.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace berth::cli {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array units = {Unit{"ms", 1}, Unit{"s", 1'000}, Unit{"m", 60'000},
                              Unit{"h", 3'600'000}, Unit{"d", 86'400'000}};
constexpr std::int64_t span_ms_max = 366LL * 86'400'000;

std::int64_t unit_ms(std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.ms;
  }
  return 0;
}

}  // namespace

Result<std::int64_t> parse_span_ms(const std::string& text, const std::string& flag) {
  const auto no_span = [&] {
    return fail(Errc::bad_request, flag + " '" + text + "': is not a time span up to a year",
                "write it as 30s, 500ms or 1h30m");
  };
  std::string_view rest = text;
  std::int64_t total = 0;
  while (!rest.empty()) {
    std::int64_t count = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (error != std::errc{} || count < 0 || count > span_ms_max) return no_span();
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    const std::string_view name = rest.substr(0, rest.find_first_of("0123456789"));
    const std::int64_t each = unit_ms(name);
    if (each == 0 || count > (span_ms_max - total) / each) return no_span();
    total += count * each;
    rest.remove_prefix(name.size());
  }
  if (total == 0) return no_span();
  return total;
}

std::string span_text(std::int64_t ms) {
  if (ms < 1'000) return std::to_string(ms) + " ms";
  const std::int64_t seconds = ms / 1'000;
  if (seconds < 60) {
    return std::to_string(seconds) + "." + std::to_string(ms % 1'000 / 100) + " s";
  }
  const std::int64_t minutes = seconds / 60;
  if (minutes < 60) {
    return std::to_string(minutes) + " min " + std::to_string(seconds % 60) + " s";
  }
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

}  // namespace berth::cli
