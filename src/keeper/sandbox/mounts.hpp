#pragma once

#include "base/owned.hpp"
#include "keeper/sandbox/plan.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A sandbox's root filesystem. Everything needed from the host is opened first. Then the new root
// is built and entered, and the opened objects are attached by descriptor: no path is followed from
// one root into the other. Each step returns 0 or errno.
namespace berth::keeper::sandbox {

// The owners of a sandbox's files, in ids of the process that creates them.
struct Owners {
  enum class Kind : std::uint8_t {
    range,   // the keeper is root and the sandbox has its own ids
    single,  // every process inside has the keeper's uid
  };
  Kind kind = Kind::single;
  uid_t root = 0;
  gid_t root_group = 0;
  uid_t user = 0;
  gid_t group = 0;
};

// The user namespaces whose maps are applied to host mounts; -1: no map.
struct MountMaps {
  int layers = -1;
  std::vector<int> binds = {};
};

int make_mounts_private();

// The mount options that limit a filesystem in memory.
std::string tmpfs_size(std::uint64_t bytes, std::uint64_t inodes);

// Parts that no plan changes, not mounted anywhere yet. With an id range they are made before the
// plan is known.
struct Prepared {
  Fd tray = {};     // in memory, with the skeleton of a root on the host's programs
  Fd devices = {};  // /dev
  Fd kept = {};     // the old sandbox's tray with what was kept, instead of a new one
};
int prepare(uid_t root, Prepared& made);

// A folder in the calling process's root, by its path without links.
struct RealFolder {
  std::string path = {};  // empty for the root itself
  bool is_new = false;
};
// Whether it is the root itself, or is covered by the kernel's own filesystems: a link in an image
// must not place a mount there.
bool is_reserved(const std::string& path);
// Created if it is missing, with all its parents, even behind a dangling link. Links are read and
// resolved as text from this root, so none can lead out of it, not even those in /proc that stand
// for a process's open files.
int make_real_folder(const std::string& path, RealFolder& found);

enum class DeviceNodes : std::uint8_t {
  own,
  borrowed,  // empty files on which the host's nodes are mounted
};
int make_device_folder(DeviceNodes nodes, Fd& made);

class RootBuilder {
 public:
  RootBuilder(const Plan& plan, const Owners& owners, Prepared prepared)
      : plan_(plan), owners_(owners), prepared_(std::move(prepared)) {}

  // Called while the host is visible.
  int open_layers(int map, std::uint32_t& item);
  int open_binds(const std::vector<int>& maps, std::uint32_t& item);
  int open_host();
  int open_devices();

  // Builds and enters the new root. The old one remains mounted until leave_host().
  int mount_root(int map);
  int pivot();
  // A top-level folder for the kernel's own filesystems: links are not followed. ENOTDIR if it is
  // not a folder.
  int make_folder(const char* path) const;
  int mount_proc();
  int leave_host();

  // Called when only the new root is visible.
  int attach_host();
  int attach_name_servers();
  int mount_devices();
  int mask_proc();
  int mount_tmp() const;
  int attach_binds(std::uint32_t& item);
  int make_directories(std::uint32_t& item);

  // For layers and the writes above them.
  bool is_idmapped() const { return idmapped_; }
  bool are_binds_idmapped() const { return binds_idmapped_; }
  // The directory that holds the writes to the root.
  Fd take_upper() { return std::move(upper_); }
  // A second mount of the tray, attached nowhere, for remaking the sandbox. Empty if the plan keeps
  // nothing.
  Fd take_tray() { return std::move(tray_); }

 private:
  struct HostPart {
    std::string target;
    Fd tree;
    std::string link;  // instead of a tree
  };

  bool is_plain() const { return plan_.layers.empty() && plan_.upper_folder.empty(); }
  // In layers, in kept writes and, once they are mounted, in host folders.
  bool may_have_foreign_links() const { return !is_plain() || !plan_.binds.empty(); }
  int hold_tray();
  int open_upper(int map);
  int open_name_servers();
  int add_host(const char* path, std::uint64_t attributes);
  int mount_tray();
  Fd view_of_tray(int map);
  int use_prepared_tray(Fd view);
  int use_tray_as_root();
  int mount_overlay(int map);
  enum class HostsFile : std::uint8_t { absent, empty, filled };
  HostsFile find_hosts_file() const;
  int make_cover() const;
  int fill_bottom() const;
  int own_files_from_now_on() const;
  int add_host_parts(int directory) const;
  int make_name_servers_place(int directory) const;
  int make_target(const std::string& target, mode_t kind, std::string& real) const;
  bool is_left_by_root(const std::string& path, const std::string& real) const;
  int make_owned(const std::string& path) const;
  int fix_devices() const;

  const Plan& plan_;
  Owners owners_;
  Prepared prepared_;
  bool idmapped_ = false;
  bool binds_idmapped_ = false;
  std::vector<Fd> layers_;
  std::vector<Fd> binds_;
  std::vector<HostPart> host_;
  Fd name_servers_;  // the host's, for sandboxes on its network
  std::vector<Fd> devices_;
  Fd upper_mount_;  // the plan's folder, with the layers' map
  Fd upper_;
  Fd tray_;
};

}  // namespace berth::keeper::sandbox
