#include "keeper/sandbox/mounts.hpp"

#include "keeper/sandbox/identity.hpp"
#include "keeper/sandbox/new_mount.hpp"
#include "keeper/sandbox/skeleton.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

namespace berth::keeper::sandbox {
namespace {

// Where the new root is built. It is covered only in the child's private mounts, after everything
// that is needed from the host has been opened.
constexpr const char* staging = "/tmp";
constexpr std::uint64_t usual_attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

int errno_of_mount(long result) {
  return result < 0 ? errno : 0;
}

// With all mounts below it, because a user namespace may not uncover what is mounted over.
Fd clone_tree(const char* path) {
  return Fd{::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)};
}

int attach(const Fd& tree, const std::string& target) {
  return errno_of_mount(
      ::move_mount(tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH));
}

int set_attributes(const Fd& tree, std::uint64_t attributes, int map) {
  mount_attr wanted{};
  wanted.attr_set = attributes;
  if (map >= 0) {
    wanted.attr_set |= MOUNT_ATTR_IDMAP;
    wanted.userns_fd = static_cast<std::uint64_t>(map);
  }
  return errno_of_mount(
      ::mount_setattr(tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted));
}

// Not every filesystem supports id maps; without one the owners remain as they are.
int set_attributes_mapped_if_possible(const Fd& tree, std::uint64_t attributes, int map,
                                      bool& is_mapped) {
  if (map >= 0 && set_attributes(tree, attributes, map) == 0) {
    is_mapped = true;
    return 0;
  }
  is_mapped = false;
  return set_attributes(tree, attributes, -1);
}

std::string tmpfs_options(std::uint64_t bytes, std::uint64_t inodes, const char* mode) {
  return tmpfs_size(bytes, inodes) + ",mode=" + mode;
}

// In reverse order: the next component is at the end.
void push_parts(std::string_view path, std::vector<std::string>& left) {
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (!part.empty() && part != ".") left.emplace_back(part);
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

// Like mkdir -p.
int make_path(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) return errno;
    if (end == std::string::npos) return 0;
  }
}

int make_file(const std::string& path) {
  const Fd made{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)};
  return made ? 0 : errno;
}

std::string parent_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

Fd open_entry(const Fd& layer, const char* path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return Fd{static_cast<int>(::syscall(SYS_openat2, layer.get(), path, &how, sizeof how))};
}

}  // namespace

bool is_reserved(const std::string& path) {
  const std::string whole = path + "/";
  return whole == "/" || whole.starts_with("/proc/") || whole.starts_with("/dev/");
}

int make_real_folder(const std::string& path, RealFolder& found) {
  constexpr int links_max = 40;  // the kernel's limit
  found = {};
  std::vector<std::string> left;
  push_parts(path, left);
  for (int links = 0; !left.empty();) {
    const std::string part = std::exchange(left.back(), {});
    left.pop_back();
    if (part == "..") {
      const std::size_t slash = found.path.rfind('/');
      found = {.path = found.path.substr(0, slash == std::string::npos ? 0 : slash)};
      continue;
    }
    const std::string next = found.path + "/" + part;
    const int error_number = errno_of_mount(::mkdir(next.c_str(), 0755));
    struct stat seen{};
    if (error_number != 0 && ::lstat(next.c_str(), &seen) != 0) return error_number;
    if (error_number == 0 || S_ISDIR(seen.st_mode)) {
      found = {.path = next, .is_new = error_number == 0};
      continue;
    }
    if (!S_ISLNK(seen.st_mode)) return ENOTDIR;
    if (++links > links_max) return ELOOP;
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(next.c_str(), target.data(), target.size());
    if (size < 0) return errno;
    const std::string_view text{target.data(), static_cast<std::size_t>(size)};
    if (text.starts_with('/')) found = {};
    push_parts(text, left);
  }
  return 0;
}

std::string tmpfs_size(std::uint64_t bytes, std::uint64_t inodes) {
  return "size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(inodes);
}

int make_mounts_private() {
  return errno_of_mount(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
}

int prepare(uid_t root, Prepared& made) {
  made.tray = new_mount("tmpfs", {{"mode", "0755"}}, usual_attributes);
  if (!made.tray) return errno;
  if (const int error_number = make_skeleton(made.tray.get()); error_number != 0) {
    return error_number;
  }
  // The files in /dev belong to the sandbox's root; the tray gets its owners from an id map.
  int error_number = make_files_as(root);
  if (error_number == 0) error_number = make_device_folder(DeviceNodes::own, made.devices);
  return error_number != 0 ? error_number : make_files_as(0);
}

int RootBuilder::open_layers(int map, std::uint32_t& item) {
  for (item = 0; item < plan_.layers.size(); ++item) {
    Fd tree = clone_tree(plan_.layers[item].c_str());
    if (!tree) return errno;
    const int error_number = set_attributes_mapped_if_possible(
        tree, usual_attributes | MOUNT_ATTR_RDONLY, map, idmapped_);
    if (error_number != 0) return error_number;
    layers_.push_back(std::move(tree));
  }
  return plan_.upper_folder.empty() ? 0 : open_upper(map);
}

int RootBuilder::open_upper(int map) {
  const std::string& folder = plan_.upper_folder;
  for (const char* part : {"/upper", "/work"}) {
    if (::mkdir((folder + part).c_str(), 0755) != 0 && errno != EEXIST) return errno;
  }
  upper_ = Fd{::open((folder + "/upper").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!upper_) return errno;
  upper_mount_ = clone_tree(folder.c_str());
  if (!upper_mount_) return errno;
  bool mapped = false;
  const int error_number =
      set_attributes_mapped_if_possible(upper_mount_, usual_attributes, map, mapped);
  if (plan_.layers.empty()) idmapped_ = mapped;
  return error_number;
}

int RootBuilder::open_binds(const std::vector<int>& maps, std::uint32_t& item) {
  binds_idmapped_ = true;
  for (item = 0; item < plan_.binds.size(); ++item) {
    const Bind& bind = plan_.binds[item];
    Fd tree = clone_tree(bind.source.c_str());
    if (!tree) return errno;
    std::uint64_t attributes = usual_attributes;
    if (bind.access == Access::read_only) attributes |= MOUNT_ATTR_RDONLY;
    bool mapped = false;
    const int error_number = set_attributes_mapped_if_possible(
        tree, attributes, item < maps.size() ? maps[item] : -1, mapped);
    if (error_number != 0) return error_number;
    binds_idmapped_ = binds_idmapped_ && mapped;
    binds_.push_back(std::move(tree));
  }
  return 0;
}

// A filesystem in memory that holds writes to the root. On the host its files have the ids that the
// sandbox sees, as in a folder on disk; so the sandbox gets it through the id map.
int RootBuilder::mount_tray() {
  if (prepared_.kept) {
    if (const int error_number = attach(prepared_.kept, staging); error_number != 0) {
      return error_number;
    }
    return ::chdir(staging) != 0 ? errno : hold_tray();
  }
  const bool in_memory = plan_.upper_folder.empty();
  constexpr std::uint64_t skeleton_bytes = 1 << 20;
  constexpr std::uint64_t skeleton_inodes = 256;
  const std::string options =
      tmpfs_options(in_memory ? plan_.upper_bytes : skeleton_bytes,
                    in_memory ? plan_.upper_inodes : skeleton_inodes, "0755");
  if (::mount("tmpfs", staging, "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) return errno;
  return ::chdir(staging) != 0 ? errno : hold_tray();
}

// Called while nothing is mounted in it.
int RootBuilder::hold_tray() {
  if (plan_.kept_folder.empty()) return 0;
  tray_ = clone_tree(".");
  return tray_ ? 0 : errno;
}

int RootBuilder::mount_root(int map) {
  if (is_plain() && prepared_.tray) {
    const bool is_kept = static_cast<bool>(prepared_.kept);
    const Fd& tray = is_kept ? prepared_.kept : prepared_.tray;
    if (const int error_number = attach(tray, staging); error_number != 0) return error_number;
    if (::chdir(staging) != 0) return errno;
    if (const int error_number = hold_tray(); error_number != 0) return error_number;
    if (Fd view = view_of_tray(map)) {
      const int error_number = is_kept ? make_skeleton(AT_FDCWD) : 0;
      return error_number != 0 ? error_number : use_prepared_tray(std::move(view));
    }
    // Without a map the final owner has to create it. The prepared tray is discarded with the old
    // root.
    if (is_kept) return use_tray_as_root();
  }
  if (const int error_number = mount_tray(); error_number != 0) return error_number;
  return is_plain() ? use_tray_as_root() : mount_overlay(map);
}

int RootBuilder::own_files_from_now_on() const {
  return owners_.kind == Owners::Kind::range ? make_files_as(owners_.root) : 0;
}

// A second view of the tray with other owners; empty if that is not possible.
Fd RootBuilder::view_of_tray(int map) {
  if (owners_.kind == Owners::Kind::single || map < 0) return {};
  Fd view = clone_tree(".");
  if (!view || set_attributes(view, usual_attributes, map) != 0) return {};
  idmapped_ = idmapped_ || plan_.layers.empty();
  return view;
}

int RootBuilder::use_prepared_tray(Fd view) {
  const std::string size = tmpfs_size(plan_.upper_bytes, plan_.upper_inodes);
  if (::mount(nullptr, ".", nullptr, MS_REMOUNT | MS_NOSUID | MS_NODEV, size.c_str()) != 0) {
    return errno;
  }
  upper_ = Fd{::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!upper_) return errno;
  if (const int error_number = attach(view, staging); error_number != 0) return error_number;
  if (::fchdir(view.get()) != 0) return errno;
  if (const int error_number = own_files_from_now_on(); error_number != 0) return error_number;
  return add_host_parts(AT_FDCWD);
}

int RootBuilder::use_tray_as_root() {
  upper_ = Fd{::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!upper_) return errno;
  if (::chown(".", owners_.root, owners_.root_group) != 0) return errno;
  int error_number = own_files_from_now_on();
  if (error_number == 0) error_number = make_skeleton(AT_FDCWD);
  return error_number != 0 ? error_number : add_host_parts(AT_FDCWD);
}

// The layers are mounted in the tray while the overlay is made, because older kernels require
// mounted layers. Both are discarded with the old root.
int RootBuilder::mount_overlay(int map) {
  for (const char* folder : {"root", "upper", "work", "view", "skeleton"}) {
    // The kept folder is in `upper`.
    if (::mkdir(folder, 0755) != 0 && !(prepared_.kept && errno == EEXIST)) return errno;
  }
  // Made before anything is mounted in the tray: the view includes all that is in it.
  Fd view;
  if (upper_mount_) {
    view = std::move(upper_mount_);
  } else {
    upper_ = Fd{::open("upper", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    view = view_of_tray(map);
  }
  std::string layers;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const std::string name = std::to_string(i);
    if (::mkdir(name.c_str(), 0755) != 0) return errno;
    if (const int error_number = attach(layers_[i], name); error_number != 0) return error_number;
    layers += (layers.empty() ? "" : ":") + name;
  }
  if (view) {
    if (const int error_number = attach(view, "view"); error_number != 0) return error_number;
  }
  const HostsFile hosts = find_hosts_file();
  if (hosts == HostsFile::empty) {
    if (const int error_number = make_cover(); error_number != 0) return error_number;
    layers.insert(0, "cover:");
  }
  const bool has_bottom = plan_.base == Base::host || name_servers_ || hosts == HostsFile::absent;
  if (has_bottom) {
    if (::chown("skeleton", owners_.root, owners_.root_group) != 0) return errno;
    layers += layers.empty() ? "skeleton" : ":skeleton";
  }
  if (!view && ::chown("upper", owners_.root, owners_.root_group) != 0) return errno;
  if (const int error_number = own_files_from_now_on(); error_number != 0) return error_number;
  if (has_bottom) {
    if (const int error_number = fill_bottom(); error_number != 0) return error_number;
  }
  const std::string beside = view ? "view/" : "";
  std::string options =
      "lowerdir=" + layers + ",upperdir=" + beside + "upper,workdir=" + beside + "work";
  if (owners_.kind == Owners::Kind::single) options += ",userxattr";
  if (::mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return errno;
  }
  return errno_of_mount(::chdir("root"));
}

// The topmost entry counts, even if a layer hides it or blocks the path to it.
RootBuilder::HostsFile RootBuilder::find_hosts_file() const {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Fd found = open_entry(layers_[i], hosts_file.path);
    if (!found && errno == ENOENT) continue;
    struct stat seen{};
    const bool is_empty =
        found && ::fstat(found.get(), &seen) == 0 && S_ISREG(seen.st_mode) && seen.st_size == 0;
    return is_empty ? HostsFile::empty : HostsFile::filled;
  }
  return HostsFile::absent;
}

// A layer above all others, which is not part of what the sandbox writes: a hosts file that
// replaces the empty one that other engines leave in an image. Its parent folder looks like the
// image's.
int RootBuilder::make_cover() const {
  struct stat seen{};
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Fd etc = open_entry(layers_[i], "etc");
    if (!etc) continue;
    if (::fstat(etc.get(), &seen) != 0) return errno;
    break;
  }
  if (::mkdir("cover", 0755) != 0) return errno;
  const Fd cover{::open("cover", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!cover) return errno;
  if (const int error_number = make_hosts_file(cover.get()); error_number != 0) {
    return error_number;
  }
  for (const char* path : {".", hosts_file.path}) {
    if (::fchownat(cover.get(), path, owners_.root, owners_.root_group, 0) != 0) return errno;
  }
  // An owner without an id here cannot be set; then the file belongs to its creator.
  [[maybe_unused]] const int given = ::fchownat(cover.get(), "etc", seen.st_uid, seen.st_gid, 0);
  if (::fchmodat(cover.get(), "etc", seen.st_mode & 07777, 0) != 0) return errno;
  const std::array<timespec, 2> times{seen.st_atim, seen.st_mtim};
  return errno_of_mount(::utimensat(cover.get(), "etc", times.data(), 0));
}

// The layer below all others: visible where no layer has an entry of that name, and not part of
// what the sandbox writes.
int RootBuilder::fill_bottom() const {
  const Fd bottom{::open("skeleton", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!bottom) return errno;
  const bool is_host = plan_.base == Base::host;
  const int error_number = is_host ? make_skeleton(bottom.get()) : make_hosts_file(bottom.get());
  if (error_number != 0) return error_number;
  return is_host ? add_host_parts(bottom.get()) : make_name_servers_place(bottom.get());
}

int RootBuilder::make_folder(const char* path) const {
  if (::mkdir(path, 0755) == 0) return 0;
  if (errno != EEXIST) return errno;
  if (is_plain()) return 0;  // from the skeleton
  struct stat seen{};
  if (::lstat(path, &seen) != 0) return errno;
  return S_ISDIR(seen.st_mode) ? 0 : ENOTDIR;
}

int RootBuilder::pivot() {
  // The old root is stacked on the new one; "." refers to it.
  return errno_of_mount(::syscall(SYS_pivot_root, ".", "."));
}

int RootBuilder::leave_host() {
  if (::umount2(".", MNT_DETACH) != 0) return errno;
  return errno_of_mount(::chdir("/"));
}

// Finds where to mount a folder or a file: a path without links, which is created.
int RootBuilder::make_target(const std::string& target, mode_t kind, std::string& real) const {
  const std::string folder = S_ISDIR(kind) ? target : parent_path(target);
  real = target;
  if (!may_have_foreign_links()) return make_path(folder);
  RealFolder found;
  if (const int error_number = make_real_folder(folder, found); error_number != 0) {
    return error_number;
  }
  real = found.path;
  if (!S_ISDIR(kind)) real += target.substr(target.rfind('/'));
  return real != target && is_reserved(real) ? EBUSY : 0;
}

int RootBuilder::attach_binds(std::uint32_t& item) {
  for (item = 0; item < plan_.binds.size(); ++item) {
    struct stat source{};
    if (::fstat(binds_[item].get(), &source) != 0) return errno;
    std::string target;
    int error_number = make_target(plan_.binds[item].target, source.st_mode, target);
    if (error_number == 0 && !S_ISDIR(source.st_mode)) error_number = make_file(target);
    if (error_number == 0) error_number = attach(binds_[item], target);
    if (error_number != 0) return error_number;
  }
  return 0;
}

// A template that root prepared contains the user's folders, owned by root.
bool RootBuilder::is_left_by_root(const std::string& path, const std::string& real) const {
  if (path != "/home/sandbox" && path != "/workspace") return false;
  struct stat seen{};
  return ::lstat(real.c_str(), &seen) == 0 && S_ISDIR(seen.st_mode) && seen.st_uid == owners_.root;
}

int RootBuilder::make_owned(const std::string& path) const {
  RealFolder made{.path = path};
  if (may_have_foreign_links()) {
    const int error_number = make_real_folder(path, made);
    // The path exists, though not as a folder: the image wants it so.
    if (error_number == ENOTDIR && ::access(path.c_str(), F_OK) == 0) return 0;
    if (error_number != 0) return error_number;
  } else {
    if (const int error_number = make_path(parent_path(path)); error_number != 0) {
      return error_number;
    }
    made.is_new = ::mkdir(path.c_str(), 0755) == 0;
    if (!made.is_new && errno != EEXIST) return errno;
  }
  if (owners_.user == owners_.root && owners_.group == owners_.root_group) return 0;
  if (!made.is_new && !is_left_by_root(path, made.path)) return 0;
  return errno_of_mount(
      ::fchownat(AT_FDCWD, made.path.c_str(), owners_.user, owners_.group, AT_SYMLINK_NOFOLLOW));
}

int RootBuilder::make_directories(std::uint32_t& item) {
  if (plan_.base == Base::host) {
    item = plan_limits::directories;
    if (const int error_number = make_owned("/home/sandbox"); error_number != 0) {
      return error_number;
    }
  }
  for (item = 0; item < plan_.directories.size(); ++item) {
    if (const int error_number = make_owned(plan_.directories[item]); error_number != 0) {
      return error_number;
    }
  }
  return 0;
}

// If the host has none, the sandbox has none.
int RootBuilder::open_name_servers() {
  if (!plan_.allows<AllowHostNetwork>()) return 0;
  name_servers_ = clone_tree(name_servers_file);
  if (!name_servers_) return 0;
  return set_attributes(name_servers_, usual_attributes | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY,
                        -1);
}

int RootBuilder::add_host(const char* path, std::uint64_t attributes) {
  Fd tree = clone_tree(path);
  if (!tree) return errno == ENOENT ? 0 : errno;
  const int error_number = set_attributes(tree, attributes | MOUNT_ATTR_RDONLY, -1);
  if (error_number != 0) return error_number;
  host_.push_back({.target = path, .tree = std::move(tree), .link = {}});
  return 0;
}

int RootBuilder::attach_host() {
  for (const HostPart& part : host_) {
    if (!part.tree) continue;
    if (const int error_number = attach(part.tree, part.target); error_number != 0) {
      return error_number;
    }
  }
  return 0;
}

// Mounted on whatever the image has there. A link is covered, not followed.
int RootBuilder::attach_name_servers() {
  if (!name_servers_) return 0;
  std::string target;
  int error_number = make_target(name_servers_file, S_IFREG, target);
  if (error_number == 0) error_number = attach(name_servers_, target);
  if (error_number != ENOENT) return error_number;
  // A layer hides the mount point in the bottom layer.
  error_number = make_file(target);
  return error_number != 0 ? error_number : attach(name_servers_, target);
}

}  // namespace berth::keeper::sandbox
