#pragma once

#include "base/result.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::core {

// A row with its version, which changes on every write; the basis of compare-and-set and ETags.
template <class T>
struct Stored {
  T value;
  std::int64_t version = 1;
};

// Where a page starts: after the row with this time and id, ordered by (time, id) descending. Every
// list uses such a key, so a page costs the same anywhere in a long history.
struct PageKey {
  Time at;
  std::string id;

  friend bool operator==(const PageKey&, const PageKey&) = default;
};

// A key as callers see it: opaque, URL-safe text.
std::string to_cursor(const PageKey& key);
Result<PageKey> parse_cursor(std::string_view cursor);

struct PageRequest {
  std::int64_t limit = 100;
  std::optional<PageKey> after = {};
};

inline constexpr std::int64_t page_limit_default = 100;
inline constexpr std::int64_t page_limit_max = 1000;

// Parses `limit` and `after` of a query string; the error names the parameter.
Result<PageRequest> parse_page(const std::optional<std::int64_t>& limit,
                               const std::optional<std::string>& after);

template <class T>
struct Page {
  std::vector<Stored<T>> rows;
  std::optional<PageKey> next;  // absent: this is the last page
};

// A page as the engine returns it: plain values and the next page's cursor.
template <class T>
struct Listing {
  std::vector<T> rows;
  std::optional<std::string> next;
};

}  // namespace berth::core
