#pragma once

#include "base/result.hpp"
#include "files/limits.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace berth::files {

// A path down from a root, as names: relative, without "." and "..". Every instance has been
// checked.
class Path {
 public:
  // Empty text, "." and "./" are the root itself. Refuses absolute paths, "..", NUL, names over 255
  // bytes and paths that are too long or too deep, with the rule.
  static Result<Path> parse(std::string_view text, const Limits& limits);

  const std::vector<std::string>& names() const { return names_; }
  bool is_root() const { return names_.empty(); }
  // The last name; not for the root.
  const std::string& name() const { return names_.back(); }
  // "a/b/c"; "." for the root, as system calls expect.
  std::string text() const { return text_of(names_.size()); }
  std::string parent_text() const { return text_of(names_.size() - 1); }
  // The first `count` names.
  std::string text_of(std::size_t count) const;

 private:
  std::vector<std::string> names_;
};

constexpr std::size_t name_bytes_max = 255;

// A name for a message or a listing: bytes that are not printable UTF-8 or not visible become \xNN,
// and a backslash is doubled. So two names never look the same, and none can control a terminal.
std::string escaped(std::string_view name);
// The name from its escaped form; text that is not valid escaping is unchanged.
std::string unescaped(std::string_view text);

// "path 'a/b': is a device".
std::unexpected<Error> refuse(std::string_view path, std::string_view rule, std::string remedy = {},
                              Errc code = Errc::path_refused);

}  // namespace berth::files
