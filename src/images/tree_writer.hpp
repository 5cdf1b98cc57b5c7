#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "images/limits.hpp"
#include "images/progress.hpp"

#include <sys/stat.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

namespace berth::images {

enum class EntryType { file, directory, symbolic_link, hard_link, device, pipe, whiteout };

// One thing of a tree, as its archive or its folder describes it.
struct Entry {
  std::string path;  // as it is spelled there
  EntryType type = EntryType::file;
  mode_t mode = 0644;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  timespec modified = {};
  std::uint64_t bytes = 0;
  std::string target = {};  // of a link
};

// What was written, and what was left out on purpose.
struct Tally {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t set_id_bits_removed = 0;
  std::uint64_t devices_skipped = 0;
};

// own_user: without root nothing can be given away, so all belongs to whoever unpacks.
enum class Ownership { as_described, own_user };
Ownership ownership_of_this_process();

// What the tree is for. An image holds files, folders and links only. The upper layer of a sandbox
// also holds overlayfs whiteouts, and its sockets and pipes are nobody's any more.
enum class TreeKind { image, upper };

// Writes a tree below one folder from descriptions that nobody vouches for. Every way is walked
// from the descriptor of that folder without following a link, so no order of entries leads
// outside. What breaks a rule is refused as image_invalid, with the rule and the entry.
//
// Folders stay open to their owner until `finish`, which gives them the mode and the time they
// should have: a read-only folder could not be filled, and filling it would change its time.
class TreeWriter {
 public:
  struct Options {
    Limits limits = {};
    Ownership ownership = ownership_of_this_process();
    TreeKind kind = TreeKind::image;
  };
  // The meter must outlive the writer.
  TreeWriter(Fd root, Options options, Meter& meter);

  // Everything but files. Devices of an image below dev/ are counted and left out: each sandbox
  // gets its own.
  Result<> put(const Entry& entry);
  // A file is made, filled through the descriptor, and ended, which gives it size, owner and mode.
  Result<Fd> begin_file(const Entry& entry);
  Result<> end_file(const Fd& file, const Entry& entry);

  // Layers lie on each other. What a whiteout hides is what lower layers put there, wherever in its
  // own layer it stands.
  void begin_layer();
  Result<> hide(const std::string& path);
  Result<> hide_content(const std::string& path);

  // An open folder inside the tree, by its clean path, made with all above it where it is missing.
  // It is the writer's own, and good until the next call.
  Result<int> folder(const std::string& path);
  Result<> finish();

  const Tally& tally() const { return tally_; }
  const Limits& limits() const { return options_.limits; }

 private:
  struct Place {
    std::string path;    // clean, relative to the root; empty is the root itself
    std::string parent;  // clean
    std::string name;
  };
  struct Look {
    mode_t mode = 0755;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    timespec modified = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  };

  Result<Place> admit(const Entry& entry);
  Result<Place> place_of(const std::string& path) const;
  Result<int> parent_of(const Place& place);
  Result<int> make_folder(const std::string& path);
  Result<> clear(int parent, const Place& place);
  Result<> remove(int parent, const Place& place);
  Result<> put_directory(const Place& place, const Entry& entry);
  Result<> put_symbolic_link(const Place& place, const Entry& entry);
  Result<> put_hard_link(const Place& place, const Entry& entry);
  Result<> put_whiteout(const Place& place);
  Result<> skip_device(const Place& place, const Entry& entry);
  Result<> own(int folder, const std::string& name, const Entry& entry) const;
  void mark(const std::string& path);
  mode_t kept_mode(const Entry& entry);

  Fd root_;
  Options options_;
  Meter& meter_;
  Tally tally_;
  std::map<std::string, Look, std::less<>> looks_;  // of folders, for `finish`
  std::unordered_set<std::string> of_this_layer_;
  std::string open_path_;  // archives are in the order of folders, so the last one is kept open
  Fd open_folder_;
};

// The path without "./", double and final slashes; empty for the root itself. Absolute paths, ".."
// and what is too long or too deep is refused.
Result<std::string> clean_path(std::string_view path, const Limits& limits);
// "entry 'a/../b': ...", as image_invalid.
std::unexpected<Error> refuse_entry(std::string_view path, std::string_view rule,
                                    std::string remedy = {});

}  // namespace berth::images
