#pragma once

#include <string_view>

namespace berth::snapshots {

// Whether a path matches a pattern of .gitignore, as git decides it: "*" and "?" match no slash,
// "**" between slashes matches any folders, "[a-z]", "[!a]" and "[[:alpha:]]" match one character,
// and "\" takes the next character literally. The time is bounded: a pattern that would take longer
// does not match.
bool wildmatch(std::string_view pattern, std::string_view path);

}  // namespace berth::snapshots
