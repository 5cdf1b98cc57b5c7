#include "images/tree_writer.hpp"

#include "base/remove_tree.hpp"
#include "base/text.hpp"
#include "images/disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <ranges>

namespace berth::images {
namespace {

constexpr int written_folder_flags = O_RDONLY | O_DIRECTORY;
constexpr mode_t set_id_bits = S_ISUID | S_ISGID;

std::string parent_in(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash);
}

bool is_below_dev(std::string_view path) {
  return path.starts_with("dev/");
}

// A link or a file is where the path to an entry needs a folder.
bool is_blocked(int error_number) {
  return error_number == ELOOP || error_number == ENOTDIR || error_number == EXDEV;
}

std::unexpected<Error> refuse_detour(std::string_view path) {
  return refuse_entry(path,
                      "lies behind a symbolic link or a file, and nothing is unpacked through one",
                      "write the archive with the real path of the entry");
}

}  // namespace

// Root in a user namespace can give files only to users of that namespace.
Ownership ownership_of_this_process() {
  if (::geteuid() != 0) return Ownership::own_user;
  std::ifstream ranges{"/proc/self/uid_map"};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  std::uint64_t all = 0;
  while (ranges >> inside >> outside >> count) all += count;
  return all > id_max ? Ownership::as_described : Ownership::own_user;
}

std::unexpected<Error> refuse_entry(std::string_view path, std::string_view rule,
                                    std::string remedy) {
  return fail(Errc::image_invalid, "entry " + in_quotes(path) + ": " + std::string{rule},
              std::move(remedy));
}

Result<std::string> clean_path(std::string_view path, const Limits& limits) {
  if (path.empty()) return refuse_entry(path, "has no name");
  // Some programs write a slash alone for the folder that they were given.
  if (path.front() == '/' && path != "/") return refuse_entry(path, "is an absolute path");
  if (path.size() > limits.path_bytes_max) {
    return refuse_entry(
        path, "has a path of more than " + std::to_string(limits.path_bytes_max) + " bytes");
  }
  std::string clean;
  std::size_t depth = 0;
  for (const auto part : std::views::split(path, '/')) {
    const std::string_view name{part.begin(), part.end()};
    if (name.empty() || name == ".") continue;
    if (name == "..") return refuse_entry(path, "leads out through '..'");
    if (name.size() > limits.name_bytes_max) {
      return refuse_entry(
          path, "has a name of more than " + std::to_string(limits.name_bytes_max) + " bytes");
    }
    if (++depth > limits.depth_max) {
      return refuse_entry(path, "is deeper than " + std::to_string(limits.depth_max) + " folders");
    }
    clean.append(clean.empty() ? "" : "/").append(name);
  }
  return clean;
}

TreeWriter::TreeWriter(Fd root, Options options, Meter& meter)
    : root_(std::move(root)), options_(options), meter_(meter) {}

Result<TreeWriter::Place> TreeWriter::place_of(const std::string& path) const {
  BERTH_TRY(std::string clean, clean_path(path, options_.limits));
  Place place{.path = std::move(clean), .parent = {}, .name = {}};
  place.parent = parent_in(place.path);
  place.name = place.parent.empty() ? place.path : place.path.substr(place.parent.size() + 1);
  return place;
}

// Checks every limit that a single entry can exceed, before anything is done for it.
Result<TreeWriter::Place> TreeWriter::admit(const Entry& entry) {
  const Limits& limits = options_.limits;
  BERTH_DO(meter_.go_on());
  BERTH_TRY(Place place, place_of(entry.path));
  if (++tally_.entries > limits.entries_max) {
    return refuse_entry(entry.path,
                        "is one more than " + std::to_string(limits.entries_max) + " entries");
  }
  if (entry.uid > id_max || entry.gid > id_max) {
    return refuse_entry(entry.path,
                        "belongs to " + std::to_string(entry.uid) + ":" +
                            std::to_string(entry.gid) + ", and a sandbox has only the ids up to " +
                            std::to_string(id_max),
                        "write the archive with other owners: tar --owner=0 --group=0");
  }
  if (entry.target.size() > limits.target_bytes_max) {
    return refuse_entry(entry.path, "is a link that says more than " +
                                        std::to_string(limits.target_bytes_max) + " bytes");
  }
  if (entry.type == EntryType::file) {
    if (entry.bytes > limits.file_bytes_max) {
      return refuse_entry(entry.path,
                          "is larger than " + std::to_string(limits.file_bytes_max) + " bytes");
    }
    if (entry.bytes > limits.bytes_max - tally_.bytes) {
      return refuse_entry(
          entry.path, "makes the image larger than " + std::to_string(limits.bytes_max) + " bytes");
    }
    tally_.bytes += entry.bytes;
  }
  meter_.add_entry();
  return place;
}

Result<int> TreeWriter::folder(const std::string& path) {
  if (path.empty()) return root_.get();
  if (open_folder_ && open_path_ == path) return open_folder_.get();
  Fd found{open_beneath(root_.get(), path, written_folder_flags)};
  if (!found && errno == ENOENT) return make_folder(path);
  if (!found && is_blocked(errno)) return refuse_detour(path);
  if (!found) return disk_failure("open", path, errno);
  open_path_ = path;
  open_folder_ = std::move(found);
  return open_folder_.get();
}

// The error names the entry: the blocking link itself breaks no rule.
Result<int> TreeWriter::parent_of(const Place& place) {
  Result<int> parent = folder(place.parent);
  if (!parent && parent.error().code == Errc::image_invalid) return refuse_detour(place.path);
  return parent;
}

Result<int> TreeWriter::make_folder(const std::string& path) {
  BERTH_TRY(const Place place, place_of(path));
  BERTH_TRY(const int parent, folder(place.parent));
  if (::mkdirat(parent, place.name.c_str(), 0700) != 0) {
    return disk_failure("make folder", path, errno);
  }
  looks_.try_emplace(path, Look{});
  Fd made{::openat(parent, place.name.c_str(), written_folder_flags | O_NOFOLLOW | O_CLOEXEC)};
  if (!made) return disk_failure("open", path, errno);
  open_path_ = path;
  open_folder_ = std::move(made);
  return open_folder_.get();
}

Result<> TreeWriter::remove(int parent, const Place& place) {
  if (::unlinkat(parent, place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return disk_failure("remove", place.path, errno);
  BERTH_DO(remove_tree(path_at(parent, place.name)));
  const std::string inside = place.path + "/";
  looks_.erase(place.path);
  // '0' follows '/', so this is everything that starts with "path/".
  looks_.erase(looks_.lower_bound(inside), looks_.lower_bound(place.path + "0"));
  open_folder_ = {};  // it may have been inside
  open_path_.clear();
  return {};
}

// A later entry replaces an earlier one. It never writes into it: the earlier one may be a link, or
// have other names.
Result<> TreeWriter::clear(int parent, const Place& place) {
  if (place.path.empty()) return refuse_entry("./", "is the root, which can only be a folder");
  return remove(parent, place);
}

void TreeWriter::mark(const std::string& path) {
  for (std::string at = path; !at.empty(); at = parent_in(at)) {
    if (!of_this_layer_.insert(at).second) return;
  }
}

// Set-user-id programs have no effect in a sandbox, and would be dangerous if they were reachable
// on the host. On folders the group bit only decides the group of new files.
mode_t TreeWriter::kept_mode(const Entry& entry) {
  mode_t mode = entry.mode & 07777;
  if (entry.type != EntryType::directory && (mode & set_id_bits) != 0) {
    mode &= ~set_id_bits;
    ++tally_.set_id_bits_removed;
  }
  // Without root, a tree that its owner cannot read could be neither verified nor copied.
  if (options_.ownership == Ownership::own_user) {
    mode |= entry.type == EntryType::directory ? 0700 : 0400;
  }
  return mode;
}

Result<> TreeWriter::own(int folder, const std::string& name, const Entry& entry) const {
  if (options_.ownership == Ownership::as_described &&
      ::fchownat(folder, name.c_str(), entry.uid, entry.gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return disk_failure("change the owner of", entry.path, errno);
  }
  return {};
}

Result<> TreeWriter::put(const Entry& entry) {
  BERTH_TRY(const Place place, admit(entry));
  mark(place.path);
  switch (entry.type) {
    case EntryType::directory: return put_directory(place, entry);
    case EntryType::symbolic_link: return put_symbolic_link(place, entry);
    case EntryType::hard_link: return put_hard_link(place, entry);
    case EntryType::device: return skip_device(place, entry);
    case EntryType::pipe:
      if (options_.kind == TreeKind::upper) return {};
      return skip_device(place, entry);
    case EntryType::whiteout:
      if (options_.kind == TreeKind::upper) return put_whiteout(place);
      return skip_device(place, entry);
    case EntryType::file: break;
  }
  return refuse_entry(entry.path, "is a file without content");
}

Result<> TreeWriter::put_directory(const Place& place, const Entry& entry) {
  if (!place.path.empty()) {
    BERTH_TRY(const int parent, parent_of(place));
    struct stat found{};
    const bool exists = ::fstatat(parent, place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists || !S_ISDIR(found.st_mode)) {
      BERTH_DO(clear(parent, place));
      if (::mkdirat(parent, place.name.c_str(), 0700) != 0) {
        return disk_failure("make folder", place.path, errno);
      }
    }
  }
  looks_.insert_or_assign(place.path, Look{.mode = kept_mode(entry),
                                           .uid = entry.uid,
                                           .gid = entry.gid,
                                           .modified = entry.modified});
  return {};
}

Result<> TreeWriter::put_symbolic_link(const Place& place, const Entry& entry) {
  if (entry.target.empty()) return refuse_entry(entry.path, "is a link that says nothing");
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  if (::symlinkat(entry.target.c_str(), parent, place.name.c_str()) != 0) {
    return disk_failure("make link", place.path, errno);
  }
  BERTH_DO(own(parent, place.name, entry));
  const timespec times[] = {entry.modified, entry.modified};
  ::utimensat(parent, place.name.c_str(), times, AT_SYMLINK_NOFOLLOW);  // not all systems keep it
  return {};
}

Result<> TreeWriter::put_hard_link(const Place& place, const Entry& entry) {
  Result<Place> target = place_of(entry.target);
  if (!target) {
    return refuse_entry(entry.path,
                        "is a hard link to something outside: " + target.error().message);
  }
  if (target->path == place.path) return refuse_entry(entry.path, "is a hard link to itself");
  const Fd from{open_beneath(root_.get(), target->parent, written_folder_flags)};
  struct stat found{};
  if (!from || ::fstatat(from.get(), target->name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return refuse_entry(entry.path, "is a hard link to " + in_quotes(target->path) +
                                        ", which is not in the tree before it");
  }
  if (!S_ISREG(found.st_mode) && !S_ISLNK(found.st_mode)) {
    return refuse_entry(entry.path,
                        "is a hard link to " + in_quotes(target->path) + ", which is not a file");
  }
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  if (::linkat(from.get(), target->name.c_str(), parent, place.name.c_str(), 0) != 0) {
    return disk_failure("link", place.path, errno);
  }
  return {};
}

// The kernel lets any user make the device 0:0, because it is not a real device.
Result<> TreeWriter::put_whiteout(const Place& place) {
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  if (::mknodat(parent, place.name.c_str(), S_IFCHR | 0000, 0) != 0) {
    return disk_failure("make whiteout", place.path, errno);
  }
  return {};
}

Result<> TreeWriter::skip_device(const Place& place, const Entry& entry) {
  if (options_.kind == TreeKind::image && is_below_dev(place.path)) {
    ++tally_.devices_skipped;
    return {};
  }
  return refuse_entry(entry.path, "is a device, a pipe or a socket",
                      "an image holds files, folders and links");
}

Result<Fd> TreeWriter::begin_file(const Entry& entry) {
  BERTH_TRY(const Place place, admit(entry));
  mark(place.path);
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Fd file{::openat(parent, place.name.c_str(), flags, 0600)};
  if (!file) return disk_failure("make file", place.path, errno);
  return file;
}

Result<> TreeWriter::end_file(const Fd& file, const Entry& entry) {
  // A file may end in a hole.
  if (::ftruncate(file.get(), static_cast<off_t>(entry.bytes)) != 0) {
    return disk_failure("write", entry.path, errno);
  }
  if (options_.ownership == Ownership::as_described &&
      ::fchown(file.get(), entry.uid, entry.gid) != 0) {
    return disk_failure("change the owner of", entry.path, errno);
  }
  if (::fchmod(file.get(), kept_mode(entry)) != 0) {
    return disk_failure("change the mode of", entry.path, errno);
  }
  const timespec times[] = {entry.modified, entry.modified};
  if (::futimens(file.get(), times) != 0) return disk_failure("set the time of", entry.path, errno);
  return {};
}

void TreeWriter::begin_layer() {
  of_this_layer_.clear();
}

Result<> TreeWriter::hide(const std::string& path) {
  BERTH_TRY(const Place place, place_of(path));
  if (place.path.empty()) return refuse_entry(path, "would hide the root");
  mark(place.parent);
  if (of_this_layer_.contains(place.path)) return hide_content(place.path);
  const Fd parent{open_beneath(root_.get(), place.parent, written_folder_flags)};
  if (!parent && errno == ENOENT) return {};
  if (!parent && is_blocked(errno)) return refuse_detour(path);
  if (!parent) return disk_failure("open", place.parent, errno);
  return remove(parent.get(), place);
}

Result<> TreeWriter::hide_content(const std::string& path) {
  std::string clean;
  if (!path.empty()) {
    BERTH_TRY(clean, clean_path(path, options_.limits));
  }
  mark(clean);
  std::vector<std::string> names;
  {
    const Fd inside{open_beneath(root_.get(), clean, written_folder_flags)};
    // It is not a folder, so there is nothing in it.
    if (!inside && (errno == ENOENT || is_blocked(errno))) return {};
    if (!inside) return disk_failure("open", clean, errno);
    BERTH_TRY(names, names_of(inside.get(), clean));
  }
  const std::string prefix = clean.empty() ? "" : clean + "/";
  for (const std::string& name : names) BERTH_DO(hide(prefix + name));
  return {};
}

Result<> TreeWriter::finish() {
  looks_.try_emplace("", Look{});
  // The deepest first: a folder with its final mode may not be passable any more.
  for (const auto& [path, look] : looks_ | std::views::reverse) {
    const Fd at{open_beneath(root_.get(), path, written_folder_flags)};
    if (!at) return disk_failure("open", path, errno);
    if (options_.ownership == Ownership::as_described &&
        ::fchown(at.get(), look.uid, look.gid) != 0) {
      return disk_failure("change the owner of", path, errno);
    }
    if (::fchmod(at.get(), look.mode) != 0) return disk_failure("change the mode of", path, errno);
    const timespec times[] = {look.modified, look.modified};
    if (::futimens(at.get(), times) != 0) return disk_failure("set the time of", path, errno);
  }
  looks_.clear();
  return {};
}

}  // namespace berth::images
