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

// One entry of a tree, as its archive or folder describes it.
struct Entry {
  std::string path;  // as spelled there
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

// own_user: without root files cannot be given away, so everything belongs to the unpacking user.
enum class Ownership { as_described, own_user };
Ownership ownership_of_this_process();

// What the tree is for. An image has only files, folders and links. A sandbox's upper layer also
// has overlayfs whiteouts; its sockets and pipes are no longer in use.
enum class TreeKind { image, upper };

// Writes a tree below one folder from untrusted descriptions. Every path is walked from that
// folder's descriptor without following a link, so no order of entries leads outside. An entry that
// breaks a rule is refused as image_invalid, with the rule and the entry.
//
// Folders remain open to their owner until `finish`, which sets their final mode and time: a
// read-only folder could not be filled, and filling it would change its time.
class TreeWriter {
 public:
  struct Options {
    Limits limits = {};
    Ownership ownership = ownership_of_this_process();
    TreeKind kind = TreeKind::image;
  };
  // The meter must outlive the writer.
  TreeWriter(Fd root, Options options, Meter& meter);

  // Everything but files. An image's devices below dev/ are counted and left out: each sandbox gets
  // its own.
  Result<> put(const Entry& entry);
  // A file is created, filled through the descriptor, and ended, which sets its size, owner and
  // mode.
  Result<Fd> begin_file(const Entry& entry);
  Result<> end_file(const Fd& file, const Entry& entry);

  // Starts the next layer. A whiteout hides what lower layers put there, wherever it is in its own
  // layer.
  void begin_layer();
  Result<> hide(const std::string& path);
  Result<> hide_content(const std::string& path);

  // An open folder in the tree, by its clean path; created with its parents if it is missing. The
  // writer owns it, and it is valid until the next call.
  Result<int> folder(const std::string& path);
  Result<> finish();

  const Tally& tally() const { return tally_; }
  const Limits& limits() const { return options_.limits; }

 private:
  struct Place {
    std::string path;    // clean, relative to the root; empty for the root itself
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
  std::string open_path_;  // the last folder is kept open, since archives are in folder order
  Fd open_folder_;
};

// The path without "./", double and trailing slashes; empty for the root itself. Refuses absolute
// paths, ".." and paths that are too long or too deep.
Result<std::string> clean_path(std::string_view path, const Limits& limits);
// "entry 'a/../b': ...", as image_invalid.
std::unexpected<Error> refuse_entry(std::string_view path, std::string_view rule,
                                    std::string remedy = {});

}  // namespace berth::images
