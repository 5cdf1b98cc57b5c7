#include "snapshots/folder/tree_name.hpp"

#include "base/strings.hpp"
#include "snapshots/beneath.hpp"

#include <algorithm>
#include <array>

namespace berth::snapshots {
namespace {

constexpr std::size_t name_max = 255;
constexpr std::size_t path_max = 4095;

// The characters that HFS+ leaves out when it compares names.
constexpr std::array<std::string_view, 17> ignored_by_hfs = {
    "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
    "\u206a", "\u206b", "\u206c", "\u206d", "\u206e", "\u206f", "\ufeff", "\u00ad",
};

std::string without_ignored(std::string_view name) {
  std::string kept;
  while (!name.empty()) {
    const auto* const found = std::ranges::find_if(
        ignored_by_hfs, [&](std::string_view mark) { return name.starts_with(mark); });
    if (found != ignored_by_hfs.end()) {
      name.remove_prefix(found->size());
      continue;
    }
    kept += lower(name.front());
    name.remove_prefix(1);
  }
  return kept;
}

// NTFS drops spaces and dots at the end, and a colon begins the name of a stream.
bool is_git_folder(std::string_view name) {
  const std::string plain = without_ignored(name);
  for (const std::string_view twin : {".git", "git~1"}) {
    if (!plain.starts_with(twin)) continue;
    const std::size_t rest = plain.find_first_not_of(". ", twin.size());
    if (rest == std::string::npos || plain[rest] == ':') return true;
  }
  return false;
}

}  // namespace

std::string_view problem_of_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return "has an empty name, '.' or '..'";
  if (name.size() > name_max) return "has a name of more than 255 bytes";
  const auto controls = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, controls)) return "has a control character in a name";
  if (name.contains('/')) return "has a slash in a name";
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('\\', at), name.size());
    if (is_git_folder(name.substr(at, end - at))) return "names a folder of git's own";
    at = end + 1;
  }
  return {};
}

Result<> check_tree_path(std::string_view path, std::size_t depth_max) {
  if (path.size() > path_max) return refuse(path.substr(0, name_max), "is longer than 4095 bytes");
  std::size_t depth = 0;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (++depth > depth_max) return refuse(path.substr(0, name_max), "is too deep");
    const std::string_view problem = problem_of_name(path.substr(at, end - at));
    if (!problem.empty()) return refuse(path, problem);
    at = end + 1;
  }
  return {};
}

}  // namespace berth::snapshots
