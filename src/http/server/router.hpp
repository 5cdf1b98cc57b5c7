#pragma once

#include "http/route.hpp"

#include <memory>

namespace berth::http {

struct Match {
  const Route* route = nullptr;
  PathValues values = {};
};

// Finds a request's route by its path segments; a literal segment wins over a {parameter}. The
// route "/*" matches what no other route matches with its verb, except API paths. A longer path
// that ends in "/*" matches everything below it, whatever the verb.
class Router {
 public:
  // Two routes of the same verb and shape are a bug and end the process.
  explicit Router(std::vector<Route> routes);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  ~Router();

  // No verb means a method that no route can have. Fails with route_not_found, or with
  // method_not_allowed and the fact "allow".
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
