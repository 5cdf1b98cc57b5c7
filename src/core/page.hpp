#pragma once

#include "base/result.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::core {

// A row together with the number that changes with every write to it; the basis of compare-and-set
// and of ETags.
template <class T>
struct Stored {
  T value;
  std::int64_t version = 1;
};

// Where a page starts: after the row with this time and id, in an order of (time, id) descending.
// The same key serves every list, so that a page costs the same at the start and at the end of a
// long history.
struct PageKey {
  Time at;
  std::string id;

  friend bool operator==(const PageKey&, const PageKey&) = default;
};

// A key as callers see it: opaque text that is safe in a URL.
std::string to_cursor(const PageKey& key);
Result<PageKey> parse_cursor(std::string_view cursor);

struct PageRequest {
  std::int64_t limit = 100;
  std::optional<PageKey> after = {};
};

inline constexpr std::int64_t page_limit_default = 100;
inline constexpr std::int64_t page_limit_max = 1000;

// The `limit` and `after` of a query string; the error names the parameter.
Result<PageRequest> parse_page(const std::optional<std::int64_t>& limit,
                               const std::optional<std::string>& after);

template <class T>
struct Page {
  std::vector<Stored<T>> rows;
  std::optional<PageKey> next;  // absent: this was the last page
};

// A page as it leaves the engine: plain values and the cursor of the next page.
template <class T>
struct Listing {
  std::vector<T> rows;
  std::optional<std::string> next;
};

}  // namespace berth::core
