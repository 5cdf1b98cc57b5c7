#pragma once

#include "api/table.hpp"
#include "http/route.hpp"

#include <initializer_list>

namespace berth::http {

// How an operation is reached over HTTP. What it does, who may call it and what its values are is
// in the operation.
struct Binding {
  Verb verb = Verb::get;
  std::string path;
  std::string_view operation;
  unsigned status = 200;
  std::optional<std::size_t> body_bytes_max = {};
  bool ends_with_client = false;
};

// The program ends if the table has no such operation, or if path and target differ.
Route bind(const api::Table& operations, std::string_view tag, Binding binding);
std::vector<Route> bind_all(const api::Table& operations, std::string_view tag,
                            std::initializer_list<Binding> bindings);

// Appends the routes of one table to those of another.
void append(std::vector<Route>& all, std::vector<Route> more);

}  // namespace berth::http
