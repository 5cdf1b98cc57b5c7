#include "files/tree_diff.hpp"

#include "files/beneath.hpp"
#include "files/entry.hpp"
#include "files/tree_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>

namespace berth::files {
namespace {

constexpr std::size_t born_bytes_max = std::size_t{64} << 10;
constexpr std::size_t compared_bytes = std::size_t{128} << 10;
constexpr std::size_t compared_attribute_bytes_max = std::size_t{64}
                                                     << 10;  // the kernel's own limit

bool is_whiteout(const struct stat& seen) {
  return type_of(seen) == EntryType::whiteout;
}

bool is_opaque(int folder, OverlayMarks marks) {
  if (marks == OverlayMarks::none) return false;
  const std::string name = std::string{prefix_of(marks)} + "opaque";
  std::array<char, 4> value{};
  return ::fgetxattr(folder, name.c_str(), value.data(), value.size()) == 1 && value[0] == 'y';
}

mode_t mode_type(LayerEntry entry) {
  switch (entry) {
    case LayerEntry::file: return S_IFREG;
    case LayerEntry::directory: return S_IFDIR;
    case LayerEntry::symbolic_link: return S_IFLNK;
    case LayerEntry::other: break;
  }
  return 0;
}

LayerEntry entry_of(const struct stat& seen) {
  if (S_ISREG(seen.st_mode)) return LayerEntry::file;
  if (S_ISDIR(seen.st_mode)) return LayerEntry::directory;
  if (S_ISLNK(seen.st_mode)) return LayerEntry::symbolic_link;
  return LayerEntry::other;
}

Fd open_folder(int at, const std::string& name) {
  return Fd{::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
}

using Attributes = std::map<std::string, std::string>;

// Attributes that users set; empty if they cannot be read. The overlay's own marks do not count.
std::optional<Attributes> attributes_of(int file, OverlayMarks marks) {
  std::string names(compared_attribute_bytes_max, '\0');
  const ssize_t size = ::flistxattr(file, names.data(), names.size());
  if (size < 0) return errno == ENOTSUP ? std::optional{Attributes{}} : std::nullopt;
  names.resize(static_cast<std::size_t>(size));
  Attributes out;
  for (std::size_t at = 0; at < names.size();) {
    const std::string name = names.c_str() + at;
    at += name.size() + 1;
    if (!name.starts_with("user.") || is_mark(marks, name)) continue;
    std::string value(compared_attribute_bytes_max, '\0');
    const ssize_t got = ::fgetxattr(file, name.c_str(), value.data(), value.size());
    if (got < 0) return std::nullopt;
    value.resize(static_cast<std::size_t>(got));
    out.emplace(name, std::move(value));
  }
  return out;
}

bool have_same_attributes(int one, int other, OverlayMarks marks) {
  const auto ours = attributes_of(one, marks);
  return ours && ours == attributes_of(other, marks);
}

bool has_no_attributes(int file, OverlayMarks marks) {
  const auto found = attributes_of(file, marks);
  return found && found->empty();
}

// Reads as much as there is, up to the size of the room; -1 with errno.
ssize_t read_piece(int file, std::span<char> room, off_t at) {
  std::size_t got = 0;
  while (got < room.size()) {
    const ssize_t more =
        ::pread(file, room.data() + got, room.size() - got, at + static_cast<off_t>(got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return -1;
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  return static_cast<ssize_t>(got);
}

bool have_same_content(int one, int other) {
  std::vector<char> ours(compared_bytes);
  std::vector<char> theirs(compared_bytes);
  for (off_t at = 0;; at += compared_bytes) {
    const ssize_t got = read_piece(one, ours, at);
    if (got < 0 || got != read_piece(other, theirs, at)) return false;
    const auto bytes = static_cast<std::size_t>(got);
    if (std::memcmp(ours.data(), theirs.data(), bytes) != 0) return false;
    if (bytes < compared_bytes) return true;
  }
}

// One folder as the layers below the upper one show it.
struct Below {
  std::vector<Fd> layers;  // that have the folder, uppermost first
  bool is_whole = true;    // the initial content is visible as well
};

class LayerWalk {
 public:
  explicit LayerWalk(const DiffRequest& request)
      : request_(request), comparable_bytes_(request.compared_bytes_max) {
    for (const BornWith& born : request.born_with) born_.emplace(born.path, &born);
  }

  Result<LayerDiff> walk() {
    Fd root = open_folder(request_.upper, ".");
    struct stat seen{};
    if (!root || ::fstat(root.get(), &seen) != 0) return store_failure("open", "./", errno);
    device_ = seen.st_dev;
    // A sandbox's ids are a whole range; the owner of "/" is one of them, whatever root inside did.
    first_id_ = seen.st_uid - seen.st_uid % (id_max + 1);
    // An ordinary user has a single id and cannot change owners.
    born_to_ = seen;
    if (::geteuid() == 0) born_to_.st_uid = born_to_.st_gid = first_id_;
    Below below;
    for (const Fd& layer : request_.lower) {
      below.layers.push_back(open_folder(layer.get(), "."));
      if (!below.layers.back()) return store_failure("open", "a layer", errno);
    }
    BERTH_DO(look_into(root.get(), "", below, 0));
    if (request_.birth == DiffRequest::Birth::in_upper) note_missing();
    std::ranges::sort(out_.differences, {}, &LayerDifference::path);
    return std::move(out_);
  }

 private:
  struct Was {
    struct stat seen{};
    int layer = -1;  // the folder in the layer that has it; -1 for initial content
  };
  using Found = std::optional<Was>;
  // An entry of the upper layer.
  struct Here {
    int folder;
    const std::string& name;
    struct stat seen;
  };

  Result<> look_into(int folder, const std::string& path, const Below& below, std::size_t depth) {
    if (depth > request_.depth_max) {
      out_.truncated = true;
      return {};
    }
    BERTH_TRY(const std::vector<std::string> names, names_of(folder, path));
    const std::string prefix = path.empty() ? "" : path + "/";
    for (const std::string& name : names) {
      if (is_over_) return {};
      BERTH_DO(look_at(folder, name, prefix + name, below, depth));
    }
    if (is_opaque(folder, request_.marks)) note_hidden(names, prefix, below);
    return {};
  }

  Result<> look_at(int folder, const std::string& name, const std::string& path, const Below& below,
                   std::size_t depth) {
    struct stat seen{};
    if (::fstatat(folder, name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Result<>{} : store_failure("look at", path, errno);
    }
    if (++looks_ > request_.looks_max) stop();
    seen_.insert(path);
    if (seen.st_dev != device_) return {};  // a mount covers what is below it
    const Found was = find_below(below, name, path);
    if (is_whiteout(seen)) {
      if (was) note(path, LayerChange::removed, was->seen, 0);
      return {};
    }
    if (S_ISDIR(seen.st_mode)) return look_at_folder({folder, name, seen}, path, below, was, depth);
    if (!is_as_before({folder, name, seen}, path, was)) {
      note(path, was ? LayerChange::changed : LayerChange::added, seen,
           S_ISREG(seen.st_mode) ? static_cast<std::uint64_t>(seen.st_size) : 0);
    }
    return {};
  }

  Result<> look_at_folder(const Here& here, const std::string& path, const Below& below,
                          const Found& was, std::size_t depth) {
    const Unlocked inside = Unlocked::open(here.folder, here.name, O_RDONLY | O_DIRECTORY);
    if (!inside) return errno == ENOENT ? Result<>{} : store_failure("open", path, errno);
    const bool was_folder = was && S_ISDIR(was->seen.st_mode);
    const bool is_told =
        was_folder ? !is_same_folder(here, inside.get(), *was) : !request_.own.contains(path);
    if (is_told) note(path, was ? LayerChange::changed : LayerChange::added, here.seen, 0);
    return look_into(inside.get(), path, child_of(below, here.name, path), depth + 1);
  }

  // What the layers below have under a name; empty if one of them has removed it.
  Found find_below(const Below& below, const std::string& name, const std::string& path) const {
    for (const Fd& layer : below.layers) {
      struct stat found{};
      if (::fstatat(layer.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (is_whiteout(found)) return std::nullopt;
      return Was{found, layer.get()};
    }
    const auto born = born_.find(path);
    if (!below.is_whole || born == born_.end()) return std::nullopt;
    Was made;
    made.seen.st_mode = mode_type(born->second->entry) | born->second->mode;
    made.seen.st_uid = born_to_.st_uid;
    made.seen.st_gid = born_to_.st_gid;
    return made;
  }

  Below child_of(const Below& below, const std::string& name, const std::string& path) const {
    Below child{.layers = {}, .is_whole = below.is_whole};
    for (const Fd& layer : below.layers) {
      struct stat found{};
      if (::fstatat(layer.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      Fd inside = S_ISDIR(found.st_mode) ? open_folder(layer.get(), name) : Fd{};
      const bool ends = !inside || is_opaque(inside.get(), request_.marks);
      if (inside) child.layers.push_back(std::move(inside));
      if (!ends) continue;
      child.is_whole = false;
      return child;
    }
    const auto born = born_.find(path);
    if (born != born_.end() && born->second->entry != LayerEntry::directory) child.is_whole = false;
    return child;
  }

  bool is_as_before(const Here& here, const std::string& path, const Found& was) {
    if (!was) return false;
    if (was->layer >= 0) return is_same_file(here, *was);
    return is_as_born(here, *born_.at(path), *was);
  }

  // Folders are compared elsewhere: one that is not a folder any more is a different kind.
  bool is_as_born(const Here& here, const BornWith& born, const Was& was) const {
    const bool is_same_kind = (here.seen.st_mode & S_IFMT) == (was.seen.st_mode & S_IFMT);
    if (!is_same_kind || !is_same_owner(here.seen, was.seen)) return false;
    if (born.entry == LayerEntry::symbolic_link) {
      return read_link(here.folder, here.name, here.name).value_or("") == born.text;
    }
    const bool has_mode = born.mode == 0 || (here.seen.st_mode & 07777) == born.mode;
    return has_mode && has_text(here.folder, here.name, born.text);
  }

  // It was copied up and not changed. The time proves nothing: a writer can reset it.
  bool is_same_file(const Here& here, const Was& was) {
    const struct stat& above = here.seen;
    const struct stat& below = was.seen;
    const bool looks_the_same = S_ISREG(above.st_mode) && S_ISREG(below.st_mode) &&
                                above.st_size == below.st_size && above.st_mode == below.st_mode &&
                                same_moment(above.st_mtim, below.st_mtim) &&
                                is_same_owner(above, below);
    const auto bytes = static_cast<std::uint64_t>(above.st_size);
    // A file that is not compared is reported as changed.
    if (!looks_the_same || bytes > comparable_bytes_) return false;
    comparable_bytes_ -= bytes;
    const Unlocked now = Unlocked::open(here.folder, here.name, O_RDONLY | O_NONBLOCK);
    const Unlocked then = Unlocked::open_as_it_is(was.layer, here.name, O_RDONLY | O_NONBLOCK);
    return now && then && have_same_attributes(now.get(), then.get(), request_.marks) &&
           have_same_content(now.get(), then.get());
  }

  // The time is ignored: it reflects changes in the content, which are reported separately.
  bool is_same_folder(const Here& here, int inside, const Was& was) const {
    if (was.layer < 0 && (was.seen.st_mode & 07777) == 0) return true;  // original mode unknown
    if (here.seen.st_mode != was.seen.st_mode || !is_same_owner(here.seen, was.seen)) return false;
    if (was.layer < 0) return has_no_attributes(inside, request_.marks);
    const Fd then = open_folder(was.layer, here.name);
    return then && have_same_attributes(inside, then.get(), request_.marks);
  }

  // A layer has ids as the sandbox sees them. If they cannot be mapped, both are unchanged.
  bool is_same_owner(const struct stat& above, const struct stat& below) const {
    const auto is_same = [&](std::uint32_t now, std::uint32_t then) {
      return now == then || (now >= first_id_ && now - first_id_ == then);
    };
    return is_same(above.st_uid, below.st_uid) && is_same(above.st_gid, below.st_gid);
  }

  // It must also have no attributes, because initial content has none.
  bool has_text(int folder, const std::string& name, const std::string& text) const {
    const Unlocked file = Unlocked::open(folder, name, O_RDONLY | O_NONBLOCK);
    std::string now(born_bytes_max, '\0');
    const ssize_t got = file ? ::pread(file.get(), now.data(), now.size(), 0) : -1;
    return got >= 0 && std::string_view{now.data(), static_cast<std::size_t>(got)} == text &&
           has_no_attributes(file.get(), request_.marks);
  }

  // Reports what an opaque folder hides of the folders below it.
  void note_hidden(const std::vector<std::string>& names, const std::string& prefix,
                   const Below& below) {
    std::set<std::string> told{names.begin(), names.end()};
    for (const Fd& layer : below.layers) {
      const auto there = names_of(layer.get(), prefix);
      if (!there) continue;
      for (const std::string& name : *there) {
        if (!told.insert(name).second) continue;
        const Found was = find_below(below, name, prefix + name);
        if (was) note(prefix + name, LayerChange::removed, was->seen, 0);
      }
    }
  }

  // Reports missing initial content; the content of a missing folder is not listed.
  void note_missing() {
    for (const auto& [path, born] : born_) {
      const std::size_t slash = path.rfind('/');
      const bool has_parent = slash == std::string::npos || seen_.contains(path.substr(0, slash));
      if (seen_.contains(path) || !has_parent) continue;
      struct stat was{};
      was.st_mode = mode_type(born->entry);
      note(path, LayerChange::removed, was, 0);
    }
  }

  // Ends the whole walk. A folder that is too deep skips only its own content.
  void stop() {
    is_over_ = true;
    out_.truncated = true;
  }

  void note(const std::string& path, LayerChange change, const struct stat& what,
            std::uint64_t bytes) {
    if (out_.differences.size() >= request_.differences_max) return stop();
    out_.differences.push_back({"/" + path, change, entry_of(what), bytes});
  }

  const DiffRequest& request_;
  std::map<std::string, const BornWith*> born_;
  std::set<std::string> seen_;
  bool is_over_ = false;
  dev_t device_ = 0;
  struct stat born_to_{};  // the owner of initial content
  std::uint32_t first_id_ = 0;
  std::uint64_t comparable_bytes_;  // budget that is left
  std::size_t looks_ = 0;
  LayerDiff out_;
};

}  // namespace

Result<LayerDiff> diff_layers(const DiffRequest& request) {
  return LayerWalk{request}.walk();
}

}  // namespace berth::files
