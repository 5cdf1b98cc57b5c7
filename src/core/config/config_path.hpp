#pragma once

#include "base/json/json.hpp"

// A place inside a config, of any depth.
namespace berth::core {

// Names of fields and numbers of elements, from the outside in.
class ConfigPath {
 public:
  ConfigPath() = default;
  explicit ConfigPath(std::vector<std::string> steps) : steps_(std::move(steps)) {}
  // "registries.0.token": how bindings and access events spell it. A '.' inside a name stands
  // behind a '\', so that two places never have one spelling.
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

// What stands there; nothing where the config has no such place.
const bj::value* find_at(const bj::object& config, const ConfigPath& path);
// Replaces what stands there, or adds the last name to the object before it. False, and nothing
// changed, where there is nothing to put it into.
bool set_at(bj::object& config, const ConfigPath& path, bj::value value);
// Removes what stands there. An element of an array becomes null, because the others keep their
// numbers.
void erase_at(bj::object& config, const ConfigPath& path);

}  // namespace berth::core
