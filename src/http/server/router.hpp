#pragma once

#include "http/route.hpp"

#include <memory>

namespace berth::http {

struct Match {
  const Route* route = nullptr;
  PathValues values = {};
};

// Finds the route of a request by its path segments, a literal segment before a {parameter}. The
// route "/*" takes what no other route takes with its verb, but for paths of the API.
// A longer path that ends in "/*" takes everything below it, whatever the verb.
class Router {
 public:
  // Two routes of the same verb and shape are a bug and end the process.
  explicit Router(std::vector<Route> routes);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  ~Router();

  // No verb means a method that no route can have. Fails route_not_found, or method_not_allowed
  // with the fact "allow".
  Result<Match> find(const std::optional<Verb>& verb,
                     const std::vector<std::string>& segments) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  struct Node;
  void add(const Route& route);

  std::vector<Route> routes_;
  std::unique_ptr<Node> root_;
  const Route* rest_ = nullptr;  // "/*"
};

}  // namespace berth::http
