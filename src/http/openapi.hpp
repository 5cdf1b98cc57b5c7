#pragma once

#include "http/route.hpp"

namespace berth::http {

struct ApiTitle {
  std::string title;
  std::string version;
  std::string description = {};
};

// The OpenAPI 3.1 document of a route table, in the table's order, so the same table gives the same
// text.
bj::object openapi_document(const std::vector<Route>& routes, const ApiTitle& title);

}  // namespace berth::http
