#pragma once

#include <string_view>

namespace berth::files {

// Which attributes of a layer its overlay has set as marks. The sandbox itself set all others,
// which are not trusted.
enum class OverlayMarks {
  none,     // not made by an overlay
  trusted,  // of an overlay that root mounted
  user,     // of one that was mounted with userxattr
};

// "trusted.overlay."; empty for none.
constexpr std::string_view prefix_of(OverlayMarks marks) {
  switch (marks) {
    case OverlayMarks::trusted: return "trusted.overlay.";
    case OverlayMarks::user: return "user.overlay.";
    case OverlayMarks::none: break;
  }
  return {};
}

// Whether an attribute is an overlay mark. If a sandbox sets such a name, the kernel stores it one
// level deeper ("user.overlay.overlay.opaque"), and it is not a mark.
constexpr bool is_mark(OverlayMarks marks, std::string_view attribute) {
  const std::string_view prefix = prefix_of(marks);
  if (prefix.empty() || !attribute.starts_with(prefix)) return false;
  return !attribute.substr(prefix.size()).starts_with("overlay.");
}

}  // namespace berth::files
