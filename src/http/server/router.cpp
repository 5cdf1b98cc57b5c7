#include "http/server/router.hpp"

#include "base/assert.hpp"

#include <array>
#include <map>
#include <span>

namespace berth::http {

// One node of the path tree: what may follow, and the routes that end here.
struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> parameter;
  std::array<const Route*, all<Verb>().size()> routes{};
  std::array<std::vector<std::string>, all<Verb>().size()> names;  // of the parameters on the path
  const Route* below = nullptr;  // matches every path below this one, with any verb
  std::vector<std::string> names_below;

  bool takes(const std::optional<Verb>& verb) const {
    if (verb) return routes[static_cast<std::size_t>(*verb)] != nullptr;
    return std::ranges::any_of(routes, [](const Route* route) { return route != nullptr; });
  }

  // Tries the literal first and then the parameter. No verb means any. `taken` are the segments
  // that parameters matched.
  const Node* walk(const std::optional<Verb>& verb, std::span<const std::string> segments,
                   std::vector<const std::string*>& taken) const {
    if (segments.empty()) return takes(verb) ? this : nullptr;
    const std::string& segment = segments.front();
    if (const auto literal = literals.find(segment); literal != literals.end()) {
      if (const Node* found = literal->second->walk(verb, segments.subspan(1), taken)) return found;
    }
    if (parameter == nullptr || segment.empty()) return nullptr;
    taken.push_back(&segment);
    if (const Node* found = parameter->walk(verb, segments.subspan(1), taken)) return found;
    taken.pop_back();
    return nullptr;
  }

  // The node along the segments whose route matches everything below it.
  const Node* walk_below(std::span<const std::string> segments,
                         std::vector<const std::string*>& taken) const {
    if (segments.empty()) return nullptr;
    if (below != nullptr) return this;
    const std::string& segment = segments.front();
    if (const auto literal = literals.find(segment); literal != literals.end()) {
      if (const Node* found = literal->second->walk_below(segments.subspan(1), taken)) return found;
    }
    if (parameter == nullptr || segment.empty()) return nullptr;
    taken.push_back(&segment);
    if (const Node* found = parameter->walk_below(segments.subspan(1), taken)) return found;
    taken.pop_back();
    return nullptr;
  }
};

namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  BERTH_ASSERT(path.starts_with('/'));
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

std::size_t index_of(Verb verb) {
  return static_cast<std::size_t>(verb);
}

std::vector<std::string> allowed_methods(std::span<const Route* const> routes) {
  std::vector<std::string> methods;
  for (const Verb verb : all<Verb>()) {
    if (routes[index_of(verb)] == nullptr) continue;
    methods.push_back(method_of(verb));
    if (verb == Verb::get) methods.emplace_back("HEAD");
  }
  return methods;
}

Error not_found() {
  return Error{Errc::route_not_found, "no route has this path",
               "the routes are listed in /api/openapi.json"};
}

Error not_allowed(std::span<const Route* const> routes) {
  return Error{Errc::method_not_allowed,
               "this path does not take the method of the request",
               "use a method of the Allow header",
               {},
               {{"allow", allowed_methods(routes)}}};
}

}  // namespace

std::string parameter_name(std::string_view placeholder) {
  std::string name;
  bool raise = false;
  for (const char c : placeholder) {
    const bool lower = c >= 'a' && c <= 'z';
    if (c != '_') name += raise && lower ? static_cast<char>(c - 'a' + 'A') : c;
    raise = c == '_';
  }
  return name;
}

Router::Router(std::vector<Route> routes)
    : routes_(std::move(routes)), root_(std::make_unique<Node>()) {
  for (const Route& route : routes_) add(route);
}

Router::~Router() = default;

void Router::add(const Route& route) {
  if (route.path == "/*") {
    BERTH_ASSERT(rest_ == nullptr);
    rest_ = &route;
    return;
  }
  Node* node = root_.get();
  std::vector<std::string> names;
  for (const std::string_view part : split(route.path)) {
    if (part == "*") {
      BERTH_ASSERT(node->below == nullptr);
      node->below = &route;
      node->names_below = std::move(names);
      return;
    }
    const bool parameter = part.starts_with('{') && part.ends_with('}');
    std::unique_ptr<Node>& next = parameter ? node->parameter : node->literals[std::string{part}];
    if (parameter) names.push_back(parameter_name(part.substr(1, part.size() - 2)));
    if (next == nullptr) next = std::make_unique<Node>();
    node = next.get();
  }
  const Route*& place = node->routes[index_of(route.verb)];
  BERTH_ASSERT(place == nullptr);
  place = &route;
  node->names[index_of(route.verb)] = std::move(names);
}

Result<Match> Router::find(const std::optional<Verb>& verb,
                           const std::vector<std::string>& segments) const {
  std::vector<const std::string*> taken;
  const Node* node = verb ? root_->walk(verb, segments, taken) : nullptr;
  const bool of_api = !segments.empty() && segments.front() == "api";
  if (node == nullptr && rest_ != nullptr && verb == rest_->verb && !of_api) return Match{rest_};
  if (node == nullptr) {
    taken.clear();
    if (const Node* above = root_->walk_below(segments, taken)) {
      Match match{.route = above->below};
      for (std::size_t i = 0; i < taken.size(); ++i) {
        match.values.push_back({above->names_below[i], *taken[i]});
      }
      return match;
    }
    const Node* other = root_->walk(std::nullopt, segments, taken);
    return std::unexpected(other == nullptr ? not_found() : not_allowed(other->routes));
  }
  Match match{.route = node->routes[index_of(*verb)]};
  const std::vector<std::string>& names = node->names[index_of(*verb)];
  for (std::size_t i = 0; i < names.size(); ++i) match.values.push_back({names[i], *taken[i]});
  return match;
}

}  // namespace berth::http
