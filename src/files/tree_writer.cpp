#include "files/tree_writer.hpp"

#include "base/remove_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <ranges>

namespace berth::files {
namespace {

constexpr int written_folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr std::size_t look_overhead_bytes = 128;
constexpr std::string_view whiteout_prefix = ".wh.";
constexpr std::string_view opaque_name = ".wh..wh..opq";
constexpr std::string_view aufs_prefix = ".wh..wh.";

std::string parent_in(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash);
}

// A link or a file is where the path to an entry needs a folder.
bool is_blocked(int error_number) {
  return error_number == ELOOP || error_number == ENOTDIR || error_number == EXDEV;
}

// The rule that the target of a link breaks; empty if it remains inside. "../" is allowed only at
// the beginning, where it counts folders that are not links. After a name it could leave through a
// link that leads up, whatever the text looks like.
std::string_view rule_against(std::string_view target, std::size_t up_max) {
  if (target.starts_with('/')) return "is a link to an absolute path";
  std::size_t up = 0;
  bool is_down = false;
  for (const auto part : std::views::split(target, '/')) {
    const std::string_view name{part.begin(), part.end()};
    if (name.empty() || name == ".") continue;
    if (name == ".." && is_down) return "is a link with '..' behind a name";
    is_down = name != "..";
    if (!is_down) ++up;
  }
  return up > up_max ? "is a link that leads out of the root" : std::string_view{};
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

TreeWriter::TreeWriter(Fd root, Options options, Meter& meter)
    : root_(std::move(root)), options_(std::move(options)), meter_(meter) {}

std::unexpected<Error> TreeWriter::refused(std::string_view path, std::string_view rule,
                                           std::string remedy) const {
  return refuse(path, rule, std::move(remedy), refusal_of(options_.rules));
}

std::unexpected<Error> TreeWriter::refuse_detour(std::string_view path) const {
  return refused(path, "leads through a symbolic link or a file of the archive",
                 "write the archive with the real path of the entry");
}

// A workspace lies where its place's own permissions and mounts may explain a failure.
std::unexpected<Error> TreeWriter::failure(std::string_view action, std::string_view path,
                                           int error_number) const {
  return options_.rules == Rules::workspace ? disk_failure(action, path, error_number)
                                            : store_failure(action, path, error_number);
}

Result<TreeWriter::Place> TreeWriter::place_of(std::string_view path) const {
  if (path.empty()) return refused(path, "names nothing");
  // Some programs write a slash alone for the folder that they were given.
  if (path == "/" && options_.rules != Rules::workspace) return Place{};
  Result<Path> parsed = Path::parse(path, options_.limits);
  if (!parsed) {
    parsed.error().code = refusal_of(options_.rules);
    return std::unexpected(std::move(parsed).error());
  }
  if (parsed->is_root()) return Place{};
  Place place{.path = parsed->text(), .parent = {}, .name = parsed->name()};
  place.parent = parent_in(place.path);
  return place;
}

// Declared sizes count, so that holes cost as much as bytes.
Result<> TreeWriter::check_size(const Entry& entry) {
  const Limits& limits = options_.limits;
  if (entry.type != EntryType::file) return {};
  if (entry.bytes > limits.file_bytes_max) {
    return refused(entry.path, "has more than " + std::to_string(limits.file_bytes_max) + " bytes");
  }
  if (entry.bytes > limits.bytes_max - tally_.bytes) {
    return refused(entry.path,
                   "makes the tree larger than " + std::to_string(limits.bytes_max) + " bytes");
  }
  tally_.bytes += entry.bytes;
  return {};
}

// Checks every limit that a single entry can exceed, before anything is done for it.
Result<> TreeWriter::admit(const Entry& entry) {
  const Limits& limits = options_.limits;
  BERTH_DO(meter_.go_on());
  if (++tally_.entries > limits.entries_max) {
    return refused(entry.path,
                   "is one of more than " + std::to_string(limits.entries_max) + " entries");
  }
  // In a workspace owners are ignored.
  if (options_.rules != Rules::workspace && (entry.uid > id_max || entry.gid > id_max)) {
    return refused(entry.path,
                   "belongs to " + std::to_string(entry.uid) + ":" + std::to_string(entry.gid) +
                       ", and a sandbox has only the ids up to " + std::to_string(id_max),
                   "write the archive with other owners: tar --owner=0 --group=0");
  }
  if (entry.target.size() > limits.target_bytes_max) {
    return refused(entry.path, "is a link that says more than " +
                                   std::to_string(limits.target_bytes_max) + " bytes");
  }
  BERTH_DO(check_size(entry));
  meter_.add_entry();
  return {};
}

Result<int> TreeWriter::folder(const std::string& path) {
  return folder_for(path, path);
}

// The error names the entry: a link that blocks the way to it breaks no rule itself.
Result<int> TreeWriter::folder_for(const std::string& path, const std::string& entry) {
  if (path.empty()) return root_.get();
  if (open_folder_ && open_path_ == path) return open_folder_.get();
  Fd found{open_beneath(root_.get(), path, written_folder_flags, Mounts::refused)};
  if (!found && errno == ENOENT) {
    BERTH_TRY(found, make_folder(path, entry));
  }
  if (!found && is_blocked(errno)) return refuse_detour(entry);
  if (!found) return failure("open", entry, errno);
  open_path_ = path;
  open_folder_ = std::move(found);
  return open_folder_.get();
}

Result<Fd> TreeWriter::make_folder(const std::string& path, const std::string& entry) {
  BERTH_TRY(const int parent, folder_for(parent_in(path), entry));
  const std::string name = path.substr(path.rfind('/') + 1);
  if (::mkdirat(parent, name.c_str(), 0700) != 0) return failure("make folder", entry, errno);
  if (!looks_.contains(path)) BERTH_DO(remember(path, {}));
  Fd made{::openat(parent, name.c_str(), written_folder_flags | O_CLOEXEC)};
  if (!made) return failure("open", entry, errno);
  return made;
}

Result<int> TreeWriter::parent_of(const Place& place) {
  return folder_for(place.parent, place.path);
}

Result<> TreeWriter::remember(const std::string& path, const Look& look) {
  if (looks_.insert_or_assign(path, look).second) look_bytes_ += path.size() + look_overhead_bytes;
  if (look_bytes_ <= options_.limits.folder_names_bytes_max) return {};
  return refused(path, "is one folder too many");
}

Result<> TreeWriter::remove(int parent, const Place& place) {
  const auto removed = remove_at(parent, place.name);
  if (!removed && removed.error().error_number == ENOENT) return {};
  if (!removed) return failure("remove", place.path, removed.error().error_number);
  const auto forget = [this](auto first, auto last) {
    for (auto at = first; at != last; ++at) look_bytes_ -= at->first.size() + look_overhead_bytes;
    looks_.erase(first, last);
  };
  forget(looks_.lower_bound(place.path), looks_.upper_bound(place.path));
  // '0' follows '/', so this is everything that starts with "path/".
  forget(looks_.lower_bound(place.path + "/"), looks_.lower_bound(place.path + "0"));
  open_folder_ = {};  // it may have been inside
  open_path_.clear();
  return {};
}

// A later entry replaces an earlier one. It never writes into it: the earlier one may be a link, or
// have other names.
Result<> TreeWriter::clear(int parent, const Place& place) {
  if (place.path.empty()) return refused("./", "is the root, which can only be a folder");
  if (::unlinkat(parent, place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return failure("replace", place.path, errno);
  // A layer of an image may replace a folder of the layers below. The sender of a workspace's
  // archive has no reason to.
  if (options_.rules == Rules::workspace) {
    return refused(place.path, "stands where the archive has a directory");
  }
  return remove(parent, place);
}

void TreeWriter::mark(const std::string& path) {
  if (!is_layered_) return;
  for (std::string at = path; !at.empty(); at = parent_in(at)) {
    if (!of_this_layer_.insert(at).second) return;
  }
}

// Set-user-id programs have no effect in a sandbox, and would be dangerous if they were reachable
// on the host. On folders the bits only decide the group of new files and who may remove them,
// which has no meaning where all files have one owner.
mode_t TreeWriter::kept_mode(const Entry& entry) {
  const bool is_folder = entry.type == EntryType::directory;
  const mode_t images_bits = is_folder ? 0 : S_ISUID | S_ISGID;
  const mode_t dropped = options_.rules == Rules::workspace ? 07000 : images_bits;
  if ((entry.mode & dropped) != 0) ++tally_.set_id_bits_removed;
  mode_t mode = entry.mode & 07777 & ~dropped;
  // Without root, a tree that its owner cannot read could be neither verified nor copied.
  if (options_.rules != Rules::workspace && options_.ownership == Ownership::own_user) {
    mode |= is_folder ? 0700 : 0400;
  }
  return mode;
}

std::optional<Owner> TreeWriter::owner_for(const Owner& described) const {
  if (options_.rules == Rules::workspace) return options_.owner;
  return options_.ownership == Ownership::as_described ? std::optional{described} : std::nullopt;
}

Result<> TreeWriter::put(const Entry& entry) {
  BERTH_TRY(const Place place, place_of(entry.path));
  BERTH_DO(admit(entry));
  mark(place.path);
  const bool is_layer = options_.rules == Rules::layer;
  switch (entry.type) {
    case EntryType::directory: return put_directory(place, entry);
    case EntryType::symbolic_link: return put_symbolic_link(place, entry);
    case EntryType::hard_link: return put_hard_link(place, entry);
    case EntryType::device: return skip_device(place, entry);
    case EntryType::pipe:
    case EntryType::other: return is_layer ? Result<>{} : skip_device(place, entry);
    case EntryType::whiteout: return is_layer ? put_whiteout(place) : skip_device(place, entry);
    case EntryType::file: break;
  }
  return refused(entry.path, "is a file without content");
}

Result<> TreeWriter::put_directory(const Place& place, const Entry& entry) {
  const Look look{
      .mode = kept_mode(entry), .owner = {entry.uid, entry.gid}, .modified = entry.modified};
  if (place.path.empty()) {
    // A workspace's archive joins a folder that has its own mode.
    return options_.rules == Rules::workspace ? Result<>{} : remember(place.path, look);
  }
  BERTH_TRY(const int parent, parent_of(place));
  struct stat found{};
  const bool exists = ::fstatat(parent, place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && !S_ISDIR(found.st_mode) && options_.rules == Rules::workspace) {
    return refuse_detour(place.path);
  }
  if (!exists || !S_ISDIR(found.st_mode)) {
    BERTH_DO(clear(parent, place));
    if (::mkdirat(parent, place.name.c_str(), 0700) != 0) {
      return failure("make folder", place.path, errno);
    }
  }
  return remember(place.path, look);
}

Result<> TreeWriter::check_target(const Place& place, const std::string& target) const {
  const auto refuse_link = [&](std::string_view rule) {
    return refused(place.path, rule, options_.link_remedy);
  };
  if (options_.links == LinkRule::refused) return refuse_link("is a symbolic link");
  if (target.empty() || target.contains('\0')) {
    return refuse_link("is a link to nothing that can be named");
  }
  if (options_.links == LinkRule::any) return {};
  const auto above = static_cast<std::size_t>(std::ranges::count(place.path, '/'));
  const std::string_view rule = rule_against(target, options_.depth + above);
  return rule.empty() ? Result<>{} : refuse_link(rule);
}

Result<> TreeWriter::put_symbolic_link(const Place& place, const Entry& entry) {
  BERTH_DO(check_target(place, entry.target));
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  const char* name = place.name.c_str();
  if (::symlinkat(entry.target.c_str(), parent, name) != 0) {
    return failure("make link", place.path, errno);
  }
  const std::optional<Owner> owner = owner_for({entry.uid, entry.gid});
  if (owner && ::fchownat(parent, name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return failure("change the owner of", place.path, errno);
  }
  const timespec times[] = {entry.modified, entry.modified};
  ::utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);  // not all file systems keep it
  return {};
}

// The tree contains only what was written to it, so anything found there may be linked to. Images
// also have second names of symbolic links.
Result<> TreeWriter::put_hard_link(const Place& place, const Entry& entry) {
  Result<Place> target = place_of(entry.target);
  if (!target) {
    return refused(entry.path, "is a hard link to something outside: " + target.error().message);
  }
  if (target->path == place.path) return refused(entry.path, "is a hard link to itself");
  const std::string quoted = "is a hard link to '" + escaped(target->path) + "', which ";
  Result<Found> found = find(root_.get(), target->path, Mounts::refused, target->path);
  if (!found) return refused(entry.path, quoted + "is not in the tree before it");
  const mode_t mode = found->status.st_mode;
  const bool is_linked_link = S_ISLNK(mode) && options_.rules != Rules::workspace;
  if (!S_ISREG(mode) && !is_linked_link)
    return refused(entry.path, quoted + "is not a regular file");
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  // The held entry and not its name, which another process may have given to something else.
  if (::linkat(AT_FDCWD, path_of(found->at.get()).c_str(), parent, place.name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
    return failure("link", place.path, errno);
  }
  return {};
}

// The kernel lets any user make the device 0:0, because it is not a real device.
Result<> TreeWriter::put_whiteout(const Place& place) {
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  if (::mknodat(parent, place.name.c_str(), S_IFCHR | 0000, 0) != 0) {
    return failure("make whiteout", place.path, errno);
  }
  return {};
}

Result<> TreeWriter::skip_device(const Place& place, const Entry& entry) {
  if (options_.rules == Rules::image && place.path.starts_with("dev/")) {
    ++tally_.devices_skipped;
    return {};
  }
  return refused(entry.path, "is a device, a pipe or a socket",
                 "leave it out: only files, folders and links are unpacked");
}

Result<Fd> TreeWriter::begin_file(const Entry& entry) {
  BERTH_TRY(const Place place, place_of(entry.path));
  BERTH_DO(admit(entry));
  mark(place.path);
  BERTH_TRY(const int parent, parent_of(place));
  BERTH_DO(clear(parent, place));
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Fd file{::openat(parent, place.name.c_str(), flags, 0600)};
  if (!file) return failure("make file", place.path, errno);
  return file;
}

Result<> TreeWriter::end_file(const Fd& file, const Entry& entry) {
  // A file may end in a hole.
  if (::ftruncate(file.get(), static_cast<off_t>(entry.bytes)) != 0) {
    return failure("write", entry.path, errno);
  }
  const Look look{
      .mode = kept_mode(entry), .owner = {entry.uid, entry.gid}, .modified = entry.modified};
  return apply(file.get(), look, entry.path);
}

// Owner first, because a change of owner clears mode bits.
Result<> TreeWriter::apply(int fd, const Look& look, const std::string& path) const {
  const std::optional<Owner> owner = owner_for(look.owner);
  if (owner && ::fchown(fd, owner->uid, owner->gid) != 0) {
    return failure("change the owner of", path, errno);
  }
  if (::fchmod(fd, look.mode) != 0) return failure("change the mode of", path, errno);
  const timespec times[] = {look.modified, look.modified};
  if (::futimens(fd, times) != 0) return failure("set the time of", path, errno);
  return {};
}

Result<> TreeWriter::put_all(TarReader& reader, ArchiveForm form) {
  if (form == ArchiveForm::layer) begin_layer();
  std::uint64_t entries = 0;
  while (true) {
    BERTH_TRY(const std::optional<Entry> entry, reader.next());
    if (!entry) return {};
    // Whiteouts of a layer count as well, although they are not written.
    if (++entries > options_.limits.entries_max) {
      return refused(entry->path, "is one of more than " +
                                      std::to_string(options_.limits.entries_max) + " entries");
    }
    BERTH_DO(put_entry(reader, *entry, form));
  }
}

Result<> TreeWriter::put_entry(TarReader& reader, const Entry& entry, ArchiveForm form) {
  const std::string_view name = std::string_view{entry.path}.substr(entry.path.rfind('/') + 1);
  if (form == ArchiveForm::layer && name.starts_with(whiteout_prefix)) {
    return apply_whiteout(entry.path, name);
  }
  if (entry.type != EntryType::file) return put(entry);
  BERTH_TRY(const Fd file, begin_file(entry));
  BERTH_DO(reader.content(entry, [&](std::uint64_t offset, std::string_view bytes) -> Result<> {
    meter_.add_bytes(bytes.size());
    return write_at(file.get(), bytes, offset, entry.path);
  }));
  return end_file(file, entry);
}

Result<> TreeWriter::apply_whiteout(const std::string& path, std::string_view name) {
  const std::string folder = path.substr(0, path.size() - name.size());
  if (name == opaque_name) return hide_content(folder);
  if (name.starts_with(aufs_prefix)) return {};  // private files of a storage driver
  name.remove_prefix(whiteout_prefix.size());
  if (name.empty() || name == "." || name == "..") {
    return refused(path, "is a whiteout that names nothing");
  }
  return hide(folder + std::string{name});
}

void TreeWriter::begin_layer() {
  is_layered_ = true;
  of_this_layer_.clear();
}

Result<> TreeWriter::hide(const std::string& path) {
  BERTH_TRY(const Place place, place_of(path));
  if (place.path.empty()) return refused(path, "would hide the root");
  mark(place.parent);
  if (of_this_layer_.contains(place.path)) return hide_content(place.path);
  const Fd parent{open_beneath(root_.get(), place.parent, written_folder_flags, Mounts::refused)};
  if (!parent && errno == ENOENT) return {};
  if (!parent && is_blocked(errno)) return refuse_detour(path);
  if (!parent) return failure("open", place.parent, errno);
  return remove(parent.get(), place);
}

Result<> TreeWriter::hide_content(const std::string& path) {
  Place place;
  if (!path.empty()) {
    BERTH_TRY(place, place_of(path));
  }
  mark(place.path);
  std::vector<std::string> names;
  {
    const Fd inside{open_beneath(root_.get(), place.path, written_folder_flags, Mounts::refused)};
    // It is not a folder, so there is nothing in it.
    if (!inside && (errno == ENOENT || is_blocked(errno))) return {};
    if (!inside) return failure("open", place.path, errno);
    BERTH_TRY(names, names_of(inside.get(), place.path));
  }
  const std::string prefix = place.path.empty() ? "" : place.path + "/";
  for (const std::string& name : names) BERTH_DO(hide(prefix + name));
  return {};
}

Result<> TreeWriter::finish() {
  if (options_.rules != Rules::workspace) looks_.try_emplace("", Look{});
  // The deepest first: a folder with its final mode may not be passable any more.
  for (const auto& [path, look] : looks_ | std::views::reverse) {
    const Fd at{open_beneath(root_.get(), path, written_folder_flags, Mounts::refused)};
    if (!at) return failure("open", path, errno);
    BERTH_DO(apply(at.get(), look, path));
  }
  looks_.clear();
  look_bytes_ = 0;
  return {};
}

}  // namespace berth::files
