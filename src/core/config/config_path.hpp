#pragma once

#include "base/json/json.hpp"

// A location inside a config, at any depth.
namespace berth::core {

// Field names and element indexes, from the outside in.
class ConfigPath {
 public:
  ConfigPath() = default;
  explicit ConfigPath(std::vector<std::string> steps) : steps_(std::move(steps)) {}
  // "registries.0.token", as bindings and access events spell it. A '.' inside a name is escaped
  // with '\', so that two locations never share a spelling.
  static ConfigPath parse(std::string_view text);
  std::string text() const;
  // "/registries/0/token"
  std::string pointer() const;

  const std::vector<std::string>& steps() const { return steps_; }
  ConfigPath operator/(std::string_view step) const;

  friend auto operator<=>(const ConfigPath&, const ConfigPath&) = default;

 private:
  std::vector<std::string> steps_;
};

// The value at the path; null when the config has no such path.
const bj::value* find_at(const bj::object& config, const ConfigPath& path);
// Replaces the value at the path, or adds the last name to its parent object. Returns false and
// changes nothing when there is no parent.
bool set_at(bj::object& config, const ConfigPath& path, bj::value value);
// Removes the value at the path. An array element becomes null, so that the others keep their
// indexes.
void erase_at(bj::object& config, const ConfigPath& path);

}  // namespace berth::core
