#include "keeper/sandbox/mounts.hpp"
#include "keeper/sandbox/new_mount.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

// /dev and /proc: which parts of the machine a sandbox sees.
namespace berth::keeper::sandbox {
namespace {

struct Device {
  const char* name;
  unsigned major;
  unsigned minor;
};
constexpr std::array devices{Device{"null", 1, 3},   Device{"zero", 1, 5},    Device{"full", 1, 7},
                             Device{"random", 1, 8}, Device{"urandom", 1, 9}, Device{"tty", 5, 0}};

struct Link {
  const char* name;
  const char* target;
};
constexpr std::array device_links{Link{"fd", "/proc/self/fd"}, Link{"stdin", "/proc/self/fd/0"},
                                  Link{"stdout", "/proc/self/fd/1"},
                                  Link{"stderr", "/proc/self/fd/2"}, Link{"ptmx", "pts/ptmx"}};

// Files that describe or control the host or its kernel. Ids already protect those that only the
// host's root may read; they are listed in case that ever changes.
constexpr std::array masked_files{
    "/proc/buddyinfo",   "/proc/cgroups",       "/proc/consoles",      "/proc/misc",
    "/proc/softirqs",    "/proc/vmstat",        "/proc/zoneinfo",      "/proc/cmdline",
    "/proc/config.gz",   "/proc/interrupts",    "/proc/iomem",         "/proc/ioports",
    "/proc/kallsyms",    "/proc/kcore",         "/proc/key-users",     "/proc/keys",
    "/proc/kmsg",        "/proc/latency_stats", "/proc/modules",       "/proc/partitions",
    "/proc/diskstats",   "/proc/sched_debug",   "/proc/sysrq-trigger", "/proc/timer_list",
    "/proc/timer_stats", "/proc/vmallocinfo"};
constexpr std::array masked_folders{"/proc/acpi", "/proc/asound", "/proc/bus",     "/proc/fs",
                                    "/proc/irq",  "/proc/scsi",   "/proc/pressure"};

// Folders of /dev that are also mounted elsewhere: the content of a masked folder, and /tmp. A
// separate filesystem for each would cost some memory in every memory cgroup of the machine.
constexpr const char* nothing = ".nothing";
constexpr const char* nothing_in_place = "/dev/.nothing";
constexpr const char* boot_id = ".boot_id";
constexpr const char* boot_id_in_place = "/dev/.boot_id";
constexpr const char* scratch = ".tmp";
constexpr const char* scratch_in_place = "/dev/.tmp";
// For the nodes and links themselves.
constexpr std::uint64_t own_bytes = 64 << 10;
constexpr std::uint64_t own_inodes = 64;

// The kernel has 3072 terminals for all sandboxes of a machine together, and no other limit for
// them.
constexpr unsigned terminals_max = 64;

constexpr unsigned long quiet = MS_NOSUID | MS_NOEXEC;
constexpr std::uint64_t quiet_attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

int failed(long result) {
  return result < 0 ? errno : 0;
}

bool is_missing(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR;
}

int put(const Fd& mount, const char* path) {
  return failed(::move_mount(mount.get(), "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH));
}

// Mounts a folder of /dev writable, in place or at another path.
int show(const char* folder, const char* path, std::uint64_t attributes) {
  const Fd shown{::open_tree(AT_FDCWD, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
  if (!shown) return errno;
  mount_attr wanted{};
  wanted.attr_set = attributes;
  wanted.attr_clr = MOUNT_ATTR_RDONLY | (MOUNT_ATTR_NOEXEC & ~attributes);
  if (::mount_setattr(shown.get(), "", AT_EMPTY_PATH, &wanted, sizeof wanted) != 0) return errno;
  return put(shown, path);
}

// Programs use this as the boot id. The host's own id would show sandboxes that they share a
// machine. The kernel generates a new id in the same format for each read.
int make_boot_id(int folder) {
  const Fd source{::open("/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC)};
  if (!source) return is_missing(errno) ? 0 : errno;
  std::array<char, 64> id{};
  const ssize_t size = ::read(source.get(), id.data(), id.size());
  if (size <= 0) return size < 0 ? errno : EIO;
  const Fd made{::openat(folder, boot_id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444)};
  if (!made) return errno;
  return ::write(made.get(), id.data(), static_cast<std::size_t>(size)) == size ? 0 : EIO;
}

}  // namespace

int make_device_folder(DeviceNodes nodes, Fd& made) {
  made = new_mount("tmpfs", {{"mode", "0755"}}, quiet_attributes);
  if (!made) return errno;
  const int folder = made.get();
  const mode_t kind = nodes == DeviceNodes::own ? S_IFCHR : S_IFREG;
  const mode_t before = ::umask(0);
  for (const Device& device : devices) {
    const dev_t number = nodes == DeviceNodes::own ? makedev(device.major, device.minor) : 0;
    if (::mknodat(folder, device.name, kind | 0666, number) != 0) return errno;
  }
  for (const char* open_to_all : {"shm", scratch}) {
    if (::mkdirat(folder, open_to_all, 01777) != 0) return errno;
  }
  ::umask(before);
  for (const Link& link : device_links) {
    if (::symlinkat(link.target, folder, link.name) != 0) return errno;
  }
  if (::mkdirat(folder, "pts", 0755) != 0) return errno;
  if (const int error_number = make_boot_id(folder); error_number != 0) return error_number;
  return failed(::mkdirat(folder, nothing, 0555));
}

int RootBuilder::open_devices() {
  if (prepared_.devices) return 0;
  // The host's root makes its own nodes; any other user bind-mounts the host's.
  const DeviceNodes nodes =
      owners_.kind == Owners::Kind::range ? DeviceNodes::own : DeviceNodes::borrowed;
  if (const int error_number = make_device_folder(nodes, prepared_.devices); error_number != 0) {
    return error_number;
  }
  if (nodes == DeviceNodes::own) return 0;
  for (const Device& device : devices) {
    const std::string path = std::string{"/dev/"} + device.name;
    Fd node{::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
    if (!node) return errno;
    devices_.push_back(std::move(node));
  }
  return 0;
}

int RootBuilder::mount_devices() {
  if (const int error_number = put(prepared_.devices, "/dev"); error_number != 0) {
    return error_number;
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::string path = std::string{"/dev/"} + devices[i].name;
    if (const int error_number = put(devices_[i], path.c_str()); error_number != 0) {
      return error_number;
    }
  }
  // A separate instance: it has none of the host's terminals.
  std::string terminals =
      "newinstance,ptmxmode=0666,mode=0620,max=" + std::to_string(terminals_max);
  if (owners_.kind == Owners::Kind::range) terminals += ",uid=" + std::to_string(owners_.user);
  if (::mount("devpts", "/dev/pts", "devpts", quiet, terminals.c_str()) != 0) return errno;
  if (const int error_number = show("/dev/shm", "/dev/shm", quiet_attributes | MOUNT_ATTR_NODEV);
      error_number != 0) {
    return error_number;
  }
  return fix_devices();
}

// Fixes the nodes, and leaves room for shared memory and /tmp.
int RootBuilder::fix_devices() const {
  const std::string room =
      tmpfs_size(own_bytes + plan_.shm_bytes + plan_.tmp_bytes, own_inodes + plan_.scratch_inodes);
  if (::mount(nullptr, "/dev", nullptr, MS_REMOUNT | quiet, room.c_str()) != 0) return errno;
  mount_attr fixed{};
  fixed.attr_set = MOUNT_ATTR_RDONLY;
  return failed(::mount_setattr(AT_FDCWD, "/dev", 0, &fixed, sizeof fixed));
}

int RootBuilder::mount_tmp() const {
  RealFolder folder{.path = "/tmp"};  // in the skeleton
  if (!is_plain()) {
    if (const int error_number = make_real_folder("/tmp", folder); error_number != 0) {
      return error_number;
    }
    if (is_reserved(folder.path)) return EBUSY;
  }
  if (plan_.tmp_bytes != 0) {
    return show(scratch_in_place, folder.path.c_str(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  }
  return folder.is_new ? failed(::chmod(folder.path.c_str(), 01777)) : 0;
}

int RootBuilder::mount_proc() {
  return failed(::mount("proc", "/proc", "proc", quiet | MS_NODEV, nullptr));
}

int RootBuilder::mask_proc() {
  for (const char* file : masked_files) {
    if (::mount("/dev/null", file, nullptr, MS_BIND, nullptr) != 0 && !is_missing(errno)) {
      return errno;
    }
  }
  for (const char* folder : masked_folders) {
    if (::mount(nothing_in_place, folder, nullptr, MS_BIND, nullptr) != 0 && !is_missing(errno)) {
      return errno;
    }
  }
  const Fd settings{::open_tree(AT_FDCWD, "/proc/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
  if (!settings) return errno;
  mount_attr fixed{};
  fixed.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(settings.get(), "", AT_EMPTY_PATH, &fixed, sizeof fixed) != 0) return errno;
  if (const int error_number = put(settings, "/proc/sys"); error_number != 0) return error_number;
  constexpr const char* boot_id_of_host = "/proc/sys/kernel/random/boot_id";
  if (::mount(boot_id_in_place, boot_id_of_host, nullptr, MS_BIND, nullptr) == 0) return 0;
  return is_missing(errno) ? 0 : errno;
}

}  // namespace berth::keeper::sandbox
