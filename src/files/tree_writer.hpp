#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "files/beneath.hpp"
#include "files/entry.hpp"
#include "files/limits.hpp"
#include "files/path.hpp"
#include "files/progress.hpp"
#include "files/tar_reader.hpp"

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

namespace berth::files {

// The ids that a tree of an image may have: the range that every sandbox has.
inline constexpr std::uint32_t id_max = 65535;

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

// Writes a tree below one folder from untrusted descriptions. Every path is walked from that
// folder's descriptor without following a link, so no order of entries leads outside. An entry that
// breaks a rule is refused, with the rule and the entry: as path_refused in a workspace, as
// image_invalid otherwise.
//
// Folders remain open to their owner until `finish`, which sets their final mode and time: a
// read-only folder could not be filled, and filling it would change its time.
class TreeWriter {
 public:
  struct Options {
    Rules rules = Rules::image;
    Limits limits = {};
    Ownership ownership = ownership_of_this_process();  // of an image or a layer
    std::optional<Owner> owner = {};                    // of everything in a workspace
    LinkRule links = LinkRule::any;
    // The number of folders between the root and the tree's final place: a link may lead up that
    // far.
    std::size_t depth = 0;
    std::string link_remedy = {};  // for the sender of a refused link
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
  // All entries of an archive.
  Result<> put_all(TarReader& reader, ArchiveForm form);

  // Starts the next layer. A whiteout hides what lower layers put there, wherever it is in its own
  // layer.
  void begin_layer();
  Result<> hide(const std::string& path);
  Result<> hide_content(const std::string& path);

  // An open folder in the tree, by its clean path; created with its parents if it is missing. The
  // writer owns it, and it is valid until the next call.
  Result<int> folder(const std::string& path);
  Result<> finish();

  std::unexpected<Error> refused(std::string_view path, std::string_view rule,
                                 std::string remedy = {}) const;
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
    Owner owner = {};
    timespec modified = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  };

  Result<> admit(const Entry& entry);
  Result<Place> place_of(std::string_view path) const;
  Result<int> parent_of(const Place& place);
  Result<int> folder_for(const std::string& path, const std::string& entry);
  Result<Fd> make_folder(const std::string& path, const std::string& entry);
  Result<> remember(const std::string& path, const Look& look);
  Result<> clear(int parent, const Place& place);
  Result<> remove(int parent, const Place& place);
  Result<> put_entry(TarReader& reader, const Entry& entry, ArchiveForm form);
  Result<> put_directory(const Place& place, const Entry& entry);
  Result<> put_symbolic_link(const Place& place, const Entry& entry);
  Result<> put_hard_link(const Place& place, const Entry& entry);
  Result<> put_whiteout(const Place& place);
  Result<> skip_device(const Place& place, const Entry& entry);
  Result<> apply_whiteout(const std::string& path, std::string_view name);
  Result<> check_target(const Place& place, const std::string& target) const;
  Result<> check_size(const Entry& entry);
  Result<> apply(int fd, const Look& look, const std::string& path) const;
  std::optional<Owner> owner_for(const Owner& described) const;
  std::unexpected<Error> failure(std::string_view action, std::string_view path,
                                 int error_number) const;
  std::unexpected<Error> refuse_detour(std::string_view path) const;
  void mark(const std::string& path);
  mode_t kept_mode(const Entry& entry);

  Fd root_;
  Options options_;
  Meter& meter_;
  Tally tally_;
  std::map<std::string, Look, std::less<>> looks_;  // of folders, for `finish`
  std::size_t look_bytes_ = 0;
  bool is_layered_ = false;
  std::unordered_set<std::string> of_this_layer_;
  std::string open_path_;  // the last folder is kept open, since archives are in folder order
  Fd open_folder_;
};

}  // namespace berth::files
