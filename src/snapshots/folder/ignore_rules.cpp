#include "snapshots/folder/ignore_rules.hpp"

#include "snapshots/folder/wildmatch.hpp"

#include <algorithm>
#include <ranges>

namespace berth::snapshots {
namespace {

// A file with more lines than this is an attack on our time.
constexpr std::size_t patterns_max = 10'000;

// Blanks at the end do not count, unless a backslash stands before them.
std::string_view without_end_blanks(std::string_view line) {
  std::size_t end = line.size();
  std::optional<std::size_t> blank;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') {
      if (!blank) blank = i;
    } else {
      if (line[i] == '\\') {
        ++i;
        if (i >= line.size()) return line;
      }
      blank.reset();
    }
  }
  if (blank) end = *blank;
  return line.substr(0, end);
}

}  // namespace

IgnoreFile IgnoreFile::parse(std::string_view text, std::string folder) {
  IgnoreFile file;
  file.folder_ = std::move(folder);
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  while (!text.empty() && file.patterns_.size() < patterns_max) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#')) continue;
    line = without_end_blanks(line);
    if (line.empty()) continue;
    Pattern pattern;
    if (line.front() == '!') {
      pattern.verdict = Verdict::wanted;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      pattern.folders_only = true;
      line.remove_suffix(1);
    }
    pattern.whole_path = line.contains('/');
    if (line.starts_with('/')) line.remove_prefix(1);
    pattern.literal = line.find_first_of("*?[\\") == std::string_view::npos;
    pattern.text = line;
    file.patterns_.push_back(std::move(pattern));
  }
  return file;
}

std::optional<Verdict> IgnoreFile::verdict(std::string_view path, EntryKind kind) const {
  if (patterns_.empty()) return std::nullopt;
  if (!folder_.empty()) path.remove_prefix(folder_.size() + 1);
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (const Pattern& pattern : patterns_ | std::views::reverse) {
    if (pattern.folders_only && kind != EntryKind::folder) continue;
    const std::string_view subject = pattern.whole_path ? path : name;
    const bool matches =
        pattern.literal ? pattern.text == subject : wildmatch(pattern.text, subject);
    if (matches) return pattern.verdict;
  }
  return std::nullopt;
}

std::optional<Verdict> IgnoreRules::verdict(std::string_view path, EntryKind kind) const {
  for (const IgnoreFile& file : files_ | std::views::reverse) {
    if (const auto found = file.verdict(path, kind)) return found;
  }
  return std::nullopt;
}

}  // namespace berth::snapshots
