#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

// Mounting anything, or unmounting what hides something.
namespace berth::hostile {

namespace {

Verdict mounted(const char* kind, long magic) {
  const Scratch scratch;
  if (::mount("none", scratch.path().c_str(), kind, 0, nullptr) != 0) return denied();
  struct statfs found = {};
  const bool is_there = ::statfs(scratch.path().c_str(), &found) == 0 && found.f_type == magic;
  ::umount2(scratch.path().c_str(), MNT_DETACH);
  if (!is_there) return limited("the mount is not there");
  return open_to(std::string{"mounted "} + kind);
}

Verdict mount_tmpfs(const Bait&) {
  return mounted("tmpfs", TMPFS_MAGIC);
}

Verdict mount_proc(const Bait&) {
  return mounted("proc", PROC_SUPER_MAGIC);
}

Verdict mount_sysfs(const Bait&) {
  return mounted("sysfs", SYSFS_MAGIC);
}

Verdict bind_root(const Bait&) {
  const Scratch scratch;
  if (::mount("/", scratch.path().c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return denied();
  const bool is_there = ::access(scratch.file("usr").c_str(), F_OK) == 0;
  ::umount2(scratch.path().c_str(), MNT_DETACH);
  return is_there ? open_to("bound / elsewhere") : limited("the mount is not there");
}

bool is_read_only(const char* path) {
  struct statvfs found = {};
  return ::statvfs(path, &found) == 0 && (found.f_flag & ST_RDONLY) != 0;
}

Verdict remount_usr(const Bait&) {
  if (!is_read_only("/usr")) return open_to("found /usr writable");
  for (const int flags : {MS_REMOUNT | MS_BIND, static_cast<int>(MS_REMOUNT)}) {
    if (::mount("none", "/usr", nullptr, static_cast<unsigned long>(flags), nullptr) == 0 &&
        !is_read_only("/usr")) {
      return open_to("made /usr writable");
    }
  }
  return denied();
}

Verdict set_attributes_of_usr(const Bait&) {
  mount_attr attributes = {};
  attributes.attr_clr = MOUNT_ATTR_RDONLY;
  const long status =
      ::syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &attributes, sizeof attributes);
  if (status != 0) return denied();
  return is_read_only("/usr") ? limited("/usr stays read-only") : open_to("made /usr writable");
}

// Every mount below /proc hides or protects something.
Verdict unmount_masks(const Bait&) {
  std::istringstream lines{contents_of("/proc/self/mountinfo")};
  Verdict last = denied(ENOENT);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields{line};
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string place;
    fields >> id >> parent >> device >> root >> place;
    if (!place.starts_with("/proc/")) continue;
    if (::umount2(place.c_str(), MNT_DETACH) == 0) return open_to("unmounted " + place);
    last = denied();
  }
  return last;
}

Verdict clone_tree(const Bait&) {
  const Descriptor tree{static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE | OPEN_TREE_CLOEXEC))};
  if (!tree) return denied();
  return ::faccessat(tree.get(), "usr", F_OK, 0) == 0 ? open_to("cloned the mounts of /")
                                                      : limited("the clone is empty");
}

Verdict open_filesystem(const Bait&) {
  const Descriptor context{static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC))};
  if (!context) return denied();
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return denied();
  }
  const Descriptor made{
      static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0))};
  return made ? open_to("made a mount without mount(2)") : denied();
}

// In a child, whose root it becomes.
Verdict pivot(const Bait&) {
  return in_child([] {
    const Scratch scratch;
    // Fails with EINVAL, after the permission check, if the folder is not a mount.
    if (::syscall(SYS_pivot_root, scratch.path().c_str(), scratch.path().c_str()) == 0) {
      return open_to("changed the root");
    }
    if (errno == EINVAL || errno == EBUSY) return open_to("was let through to pivot_root");
    return denied();
  });
}

constexpr Attempt attempts[] = {
    {"mount_tmpfs", mount_tmpfs},          {"mount_proc", mount_proc},
    {"mount_sysfs", mount_sysfs},          {"bind_mount_of_root", bind_root},
    {"remount_usr_writable", remount_usr}, {"mount_setattr_usr_writable", set_attributes_of_usr},
    {"unmount_proc_masks", unmount_masks}, {"open_tree_clone", clone_tree},
    {"fsopen_tmpfs", open_filesystem},     {"pivot_root", pivot},
};

}  // namespace

std::span<const Attempt> mount_attempts() {
  return attempts;
}

}  // namespace berth::hostile
