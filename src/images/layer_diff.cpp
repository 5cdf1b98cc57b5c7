#include "images/layer_diff.hpp"

#include "images/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>

namespace berth::images {
namespace {

constexpr std::size_t born_bytes_max = std::size_t{64} << 10;

bool is_whiteout(const struct stat& seen) {
  return S_ISCHR(seen.st_mode) && seen.st_rdev == makedev(0, 0);
}

bool is_opaque(int folder) {
  for (const char* name : {"trusted.overlay.opaque", "user.overlay.opaque"}) {
    std::array<char, 4> value{};
    if (::fgetxattr(folder, name, value.data(), value.size()) == 1 && value[0] == 'y') return true;
  }
  return false;
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

// Copied up, and then left as it was.
bool is_same_file(const struct stat& above, const struct stat& below) {
  return S_ISREG(above.st_mode) && S_ISREG(below.st_mode) && above.st_size == below.st_size &&
         above.st_mode == below.st_mode && above.st_mtim.tv_sec == below.st_mtim.tv_sec &&
         above.st_mtim.tv_nsec == below.st_mtim.tv_nsec;
}

// One folder as the layers below the upper one show it.
struct Below {
  std::vector<Fd> layers;  // those that have the folder, the uppermost first
  bool is_whole = true;    // what the sandbox is born with shines through as well
};

class LayerWalk {
 public:
  explicit LayerWalk(const DiffRequest& request) : request_(request) {
    for (const BornWith& born : request.born_with) born_.emplace(born.path, &born);
  }

  Result<LayerDiff> walk() {
    Fd root = open_folder(request_.upper, ".");
    struct stat seen{};
    if (!root || ::fstat(root.get(), &seen) != 0) return disk_failure("open", "./", errno);
    device_ = seen.st_dev;
    Below below;
    for (const Fd& layer : request_.lower) {
      below.layers.push_back(open_folder(layer.get(), "."));
      if (!below.layers.back()) return disk_failure("open", "a layer", errno);
    }
    BERTH_DO(look_into(root.get(), "", below, 0));
    if (request_.birth == DiffRequest::Birth::in_upper) note_missing();
    std::ranges::sort(out_.differences, {}, &LayerDifference::path);
    return std::move(out_);
  }

 private:
  using Found = std::optional<struct stat>;

  Result<> look_into(int folder, const std::string& path, const Below& below, std::size_t depth) {
    if (depth > request_.depth_max) {
      out_.truncated = true;
      return {};
    }
    BERTH_TRY(const std::vector<std::string> names, names_of(folder, path));
    const std::string prefix = path.empty() ? "" : path + "/";
    for (const std::string& name : names) {
      if (out_.truncated) return {};
      BERTH_DO(look_at(folder, name, prefix + name, below, depth));
    }
    if (is_opaque(folder)) note_hidden(names, prefix, below);
    return {};
  }

  Result<> look_at(int folder, const std::string& name, const std::string& path, const Below& below,
                   std::size_t depth) {
    struct stat seen{};
    if (::fstatat(folder, name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Result<>{} : disk_failure("look at", path, errno);
    }
    if (++looks_ > request_.looks_max) out_.truncated = true;
    seen_.insert(path);
    if (seen.st_dev != device_) return {};  // what is mounted there covers what lies below
    const Found was = find_below(below, name, path);
    if (is_whiteout(seen)) {
      if (was) note(path, LayerChange::removed, *was, 0);
      return {};
    }
    if (S_ISDIR(seen.st_mode)) return look_at_folder(folder, name, path, below, was, depth);
    if (!is_as_before(folder, name, path, seen, was)) {
      note(path, was ? LayerChange::changed : LayerChange::added, seen,
           S_ISREG(seen.st_mode) ? static_cast<std::uint64_t>(seen.st_size) : 0);
    }
    return {};
  }

  Result<> look_at_folder(int folder, const std::string& name, const std::string& path,
                          const Below& below, const Found& was, std::size_t depth) {
    struct stat seen{};
    const Unlocked inside = Unlocked::open(folder, name, O_RDONLY | O_DIRECTORY);
    if (!inside || ::fstat(inside.get(), &seen) != 0) {
      return errno == ENOENT ? Result<>{} : disk_failure("open", path, errno);
    }
    const bool was_folder = was && S_ISDIR(was->st_mode);
    if (!was_folder && !request_.own.contains(path)) {
      note(path, was ? LayerChange::changed : LayerChange::added, seen, 0);
    }
    return look_into(inside.get(), path, child_of(below, name, path), depth + 1);
  }

  // What the layers below have under a name: nothing where one of them has taken it away.
  Found find_below(const Below& below, const std::string& name, const std::string& path) const {
    for (const Fd& layer : below.layers) {
      struct stat found{};
      if (::fstatat(layer.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (is_whiteout(found)) return std::nullopt;
      return found;
    }
    const auto born = born_.find(path);
    if (!below.is_whole || born == born_.end()) return std::nullopt;
    struct stat made{};
    made.st_mode = born->second->is_file ? S_IFREG : S_IFDIR;
    return made;
  }

  Below child_of(const Below& below, const std::string& name, const std::string& path) const {
    Below child{.layers = {}, .is_whole = below.is_whole};
    for (const Fd& layer : below.layers) {
      struct stat found{};
      if (::fstatat(layer.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      Fd inside = S_ISDIR(found.st_mode) ? open_folder(layer.get(), name) : Fd{};
      const bool ends = !inside || is_opaque(inside.get());
      if (inside) child.layers.push_back(std::move(inside));
      if (!ends) continue;
      child.is_whole = false;
      return child;
    }
    const auto born = born_.find(path);
    if (born != born_.end() && born->second->is_file) child.is_whole = false;
    return child;
  }

  bool is_as_before(int folder, const std::string& name, const std::string& path,
                    const struct stat& seen, const Found& was) const {
    if (!was) return false;
    const auto born = born_.find(path);
    const bool from_layer = was->st_ino != 0;
    if (from_layer || born == born_.end()) return is_same_file(seen, *was);
    // A link of this kind is made at birth and says where the host keeps its programs.
    if (!born->second->is_file) return S_ISLNK(seen.st_mode);
    return S_ISREG(seen.st_mode) && has_text(folder, name, born->second->text);
  }

  static bool has_text(int folder, const std::string& name, const std::string& text) {
    const Unlocked file = Unlocked::open(folder, name, O_RDONLY | O_NONBLOCK);
    std::string now(born_bytes_max, '\0');
    const ssize_t got = file ? ::pread(file.get(), now.data(), now.size(), 0) : -1;
    return got >= 0 && std::string_view{now.data(), static_cast<std::size_t>(got)} == text;
  }

  // What an opaque folder hides of the folders below it.
  void note_hidden(const std::vector<std::string>& names, const std::string& prefix,
                   const Below& below) {
    std::set<std::string> told{names.begin(), names.end()};
    for (const Fd& layer : below.layers) {
      const auto there = names_of(layer.get(), prefix);
      if (!there) continue;
      for (const std::string& name : *there) {
        if (!told.insert(name).second) continue;
        const Found was = find_below(below, name, prefix + name);
        if (was) note(prefix + name, LayerChange::removed, *was, 0);
      }
    }
  }

  // Of what it was born with; where a folder is gone, nothing is said of what was in it.
  void note_missing() {
    for (const auto& [path, born] : born_) {
      const std::size_t slash = path.rfind('/');
      const bool has_parent = slash == std::string::npos || seen_.contains(path.substr(0, slash));
      if (seen_.contains(path) || !has_parent) continue;
      struct stat was{};
      was.st_mode = born->is_file ? S_IFREG : S_IFDIR;
      note(path, LayerChange::removed, was, 0);
    }
  }

  void note(const std::string& path, LayerChange change, const struct stat& what,
            std::uint64_t bytes) {
    if (out_.differences.size() >= request_.differences_max) {
      out_.truncated = true;
      return;
    }
    out_.differences.push_back({"/" + path, change, entry_of(what), bytes});
  }

  const DiffRequest& request_;
  std::map<std::string, const BornWith*> born_;
  std::set<std::string> seen_;
  dev_t device_ = 0;
  std::size_t looks_ = 0;
  LayerDiff out_;
};

}  // namespace

Result<LayerDiff> diff_layers(const DiffRequest& request) {
  return LayerWalk{request}.walk();
}

}  // namespace berth::images
