#pragma once

#include "core/page.hpp"

#include <utility>

namespace berth::engine {

// A page of rows as the API returns it: the values, and the next page's cursor.
template <class T>
core::Listing<T> to_listing(core::Page<T> page) {
  core::Listing<T> out;
  out.rows.reserve(page.rows.size());
  for (core::Stored<T>& row : page.rows) out.rows.push_back(std::move(row.value));
  if (page.next) out.next = core::to_cursor(*page.next);
  return out;
}

template <class T, class View>
auto to_listing(core::Page<T> page, View view) {
  core::Listing<decltype(view(std::declval<T>()))> out;
  out.rows.reserve(page.rows.size());
  for (core::Stored<T>& row : page.rows) out.rows.push_back(view(std::move(row.value)));
  if (page.next) out.next = core::to_cursor(*page.next);
  return out;
}

}  // namespace berth::engine
