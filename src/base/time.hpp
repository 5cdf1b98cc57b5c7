#pragma once

#include "base/result.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

// A wall-clock time with the API's precision: milliseconds since 1970 in UTC. An integer in the
// store, ISO-8601 ("2026-11-15T02:36:53.464Z") on the wire.
struct Time {
  std::int64_t ms = 0;

  friend auto operator<=>(const Time&, const Time&) = default;
  friend Time operator+(Time at, std::int64_t later_ms) { return Time{at.ms + later_ms}; }
  friend std::int64_t operator-(Time a, Time b) { return a.ms - b.ms; }
};

// A time outside the years 0000 to 9999 is written as the nearest one inside.
std::string to_iso8601(Time at);
Result<Time> parse_iso8601(std::string_view text);

}  // namespace berth
