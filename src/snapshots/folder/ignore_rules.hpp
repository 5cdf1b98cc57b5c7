#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::snapshots {

enum class EntryKind { file, folder };
enum class Verdict { ignored, wanted };

// The lines of one .gitignore, with git's meaning.
class IgnoreFile {
 public:
  // `folder` is the path of the folder that the patterns are relative to: "" or "a/b".
  static IgnoreFile parse(std::string_view text, std::string folder);

  // The last line that matches decides. Nothing if no line does. `path` begins at the root.
  std::optional<Verdict> verdict(std::string_view path, EntryKind kind) const;

 private:
  struct Pattern {
    std::string text;
    Verdict verdict = Verdict::ignored;
    bool folders_only = false;
    bool whole_path = false;  // it has a slash, so it is matched against the path, not the name
    bool literal = false;     // no special character: a comparison is enough
  };

  std::string folder_;
  std::vector<Pattern> patterns_;
};

// The ignore files on the way down to a folder: the deepest that has a matching line decides.
class IgnoreRules {
 public:
  void push(IgnoreFile file) { files_.push_back(std::move(file)); }
  std::size_t size() const { return files_.size(); }
  void shrink(std::size_t size) {
    files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(size), files_.end());
  }

  std::optional<Verdict> verdict(std::string_view path, EntryKind kind) const;

 private:
  std::vector<IgnoreFile> files_;
};

}  // namespace berth::snapshots
