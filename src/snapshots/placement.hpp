#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "snapshots/apply_journal.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace berth::snapshots {

// Does the steps of an apply in a folder that other processes may change at any time. Each step is
// one rename: a path is swapped with its draft, so what was there is never lost, and what comes out
// is compared with what the snapshot saw. No step follows a link.
class Placement {
 public:
  Placement(int root, int draft, std::optional<std::pair<uid_t, gid_t>> owner)
      : root_(root), draft_(draft), owner_(owner) {}

  enum class Outcome {
    done,
    changed,  // the path is not what the snapshot saw; it was left alone
  };
  // Does the step, or finishes one that a killed process had begun.
  Result<Outcome> place(const ApplyStep& step) const;
  // Puts back what the step replaced. `changed`: another process wrote to what we had placed, and
  // its version remains in the draft folder.
  Result<Outcome> undo(const ApplyStep& step) const;
  // Removes the folders above the path that are empty now.
  void remove_empty_folders(const std::string& path) const;

 private:
  Result<Outcome> put(const ApplyStep& step) const;
  Result<Outcome> remove(const ApplyStep& step) const;
  Result<Fd> folder_of(const std::string& path) const;
  Result<Fd> make_folder_of(const std::string& path) const;

  int root_;
  int draft_;
  std::optional<std::pair<uid_t, gid_t>> owner_;
};

// Equal but for the time of the last change of its inode, which a rename sets.
bool is_same_content(const FileState& a, const FileState& b);
// Of an entry itself, not of what it links to. Nothing if there is none.
std::optional<FileState> state_at(int folder, const std::string& name);

}  // namespace berth::snapshots
