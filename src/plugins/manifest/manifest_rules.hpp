#pragma once

#include "base/json/json.hpp"

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The rules that manifest fields share. Each message starts with the rule's name: "length: has 0
// characters, 1 to 100 are allowed".
namespace berth::plugins::rules {

struct Length {
  std::size_t least = 0;
  std::size_t most = 1'000'000;
};
enum class Presence { required, optional };

// Reads one object of a manifest and records the issues of its fields.
class ObjectReader {
 public:
  ObjectReader(const bj::object& object, const JsonAt& at, JsonIssues& issues)
      : object_(object), at_(at), issues_(issues) {}

  const bj::object& object() const { return object_; }
  const JsonAt& at() const { return at_; }
  JsonIssues& issues() const { return issues_; }
  const bj::value* find(std::string_view key) const { return object_.if_contains(key); }
  void wrong(std::string_view key, std::string message) const;

  std::optional<std::string> text(std::string_view key, Presence presence, Length length) const;
  // The same, with `^[a-z0-9][a-z0-9._-]*$`.
  std::optional<std::string> key_text(std::string_view key, Presence presence) const;
  std::optional<bool> flag(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key, Length count, Length length) const;
  // Returns nothing when absent; also nothing, with an issue, when it is not an object.
  const bj::object* child(std::string_view key, Presence presence) const;
  const bj::array* list(std::string_view key) const;
  std::optional<bj::object> schema(std::string_view key, Presence presence) const;
  std::optional<std::string> one_of(std::string_view key, Presence presence,
                                    std::span<const std::string_view> allowed) const;
  // Reports every unknown key as an error.
  void only(std::span<const std::string_view> known) const;

 private:
  const bj::object& object_;
  const JsonAt& at_;
  JsonIssues& issues_;
};

// Calls `read` for every entry of a list that is an object; other entries are errors.
void each_object(const ObjectReader& parent, std::string_view key,
                 const std::function<void(const ObjectReader&)>& read);
// The same, and each entry has a unique text `name`.
void each_unique(const ObjectReader& parent, std::string_view key, std::string_view name,
                 const std::function<void(const ObjectReader&)>& read);

bool is_among(std::span<const std::string_view> names, std::string_view name);
std::size_t characters_in(std::string_view text);
bool is_field_name(std::string_view text);  // `^[A-Za-z_][A-Za-z0-9_-]*$`
bool is_cron(std::string_view text);        // five fields of digits and `* / - ,`

}  // namespace berth::plugins::rules
