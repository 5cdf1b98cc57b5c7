#pragma once

#include "base/result.hpp"
#include "workspaces/limits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace berth::workspaces {

// A way down from a root, as names: relative, without "." and "..". One that exists was checked.
class Path {
 public:
  // Empty text, "." and "./" are the root itself. Absolute paths, "..", NUL, names over 255 bytes
  // and what is too long or too deep is refused, with the rule.
  static Result<Path> parse(std::string_view text, const Limits& limits);

  const std::vector<std::string>& names() const { return names_; }
  bool is_root() const { return names_.empty(); }
  // The last name; not of the root.
  const std::string& name() const { return names_.back(); }
  // "a/b/c"; "." for the root, so that a system call takes it.
  std::string text() const { return text_of(names_.size()); }
  std::string parent_text() const { return text_of(names_.size() - 1); }

 private:
  std::string text_of(std::size_t count) const;

  std::vector<std::string> names_;
};

constexpr std::size_t name_bytes_max = 255;

// Names on their way into a sentence or a listing: what is no printable UTF-8, or is not seen, is
// written \xNN, a backslash is doubled, so that two names never look the same and no terminal obeys
// one.
std::string escaped(std::string_view name);
// The name that was written so; what nobody writes so stays as it is.
std::string unescaped(std::string_view text);

// "path 'a/b': is a device", as path_refused.
std::unexpected<Error> refuse(std::string_view path, std::string_view rule,
                              std::string remedy = {});

}  // namespace berth::workspaces
