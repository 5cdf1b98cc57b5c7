#pragma once

#include "base/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace berth::core {

// A regular expression from a JSON Schema. A match takes time linear in its subject for any
// expression, because RE2 follows all alternatives at once instead of trying them in turn.
class Pattern {
 public:
  // Fails with validation_failed for what RE2 does not support: look-around, backreferences, a
  // repetition of more than 1000, or too many states.
  static Result<Pattern> compile(std::string_view text);

  // The maximum cost of matching this many bytes: each instruction at each byte.
  std::size_t steps_for(std::size_t bytes) const;

  // Whether the expression matches anywhere in the text.
  bool is_found_in(std::string_view text) const;
  // The groups of a match of the whole text, the text itself first; empty when it does not match.
  std::vector<std::string> groups_of(std::string_view text) const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace berth::core
