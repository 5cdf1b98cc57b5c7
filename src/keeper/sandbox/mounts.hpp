#pragma once

#include "base/owned.hpp"
#include "keeper/sandbox/plan.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The root filesystem of a sandbox. Everything of the host is opened first, then the new root is
// built and entered, and what was opened is put into its place by descriptor: no path is followed
// from one world into the other. Each step returns 0 or errno.
namespace berth::keeper::sandbox {

// As whom the files of a sandbox are made, in ids of whoever makes them.
struct Owners {
  enum class Kind : std::uint8_t {
    range,   // the keeper is root and the sandbox has ids of its own
    single,  // everybody inside is the keeper's user
  };
  Kind kind = Kind::single;
  uid_t root = 0;
  gid_t root_group = 0;
  uid_t user = 0;
  gid_t group = 0;
};

// The user namespaces whose maps the mounts of the host are given; -1: as they are.
struct MountMaps {
  int layers = -1;
  std::vector<int> binds = {};
};

int make_mounts_private();

// The options that bound a filesystem in memory.
std::string tmpfs_size(std::uint64_t bytes, std::uint64_t inodes);

// What no plan changes, mounted nowhere yet. Who has a range of ids makes it before there is a
// plan.
struct Prepared {
  Fd tray = {};     // a filesystem in memory with the skeleton of a root on the host's programs
  Fd devices = {};  // the folder /dev
  Fd kept = {};     // the tray of a former sandbox with what was kept of it, instead of a new one
};
int prepare(uid_t root, Prepared& made);

// A folder of the root that a process is in, by the way to it that has no link.
struct RealFolder {
  std::string path = {};  // nothing for the root itself
  bool is_new = false;
};
// The root itself, and what the kernel's own filesystems cover: no link of an image makes a place
// for anything else there.
bool is_reserved(const std::string& path);
// Made where it is missing, with all on the way to it, also behind a link that leads nowhere. Links
// are read and followed as text from this root: whoever laid them, not even those in /proc, which
// stand for what a process has open, lead out of it.
int make_real_folder(const std::string& path, RealFolder& found);

enum class DeviceNodes : std::uint8_t {
  own,
  borrowed,  // empty files, for the host's own to be put there
};
int make_device_folder(DeviceNodes nodes, Fd& made);

class RootBuilder {
 public:
  RootBuilder(const Plan& plan, const Owners& owners, Prepared prepared)
      : plan_(plan), owners_(owners), prepared_(std::move(prepared)) {}

  // While the host is in sight.
  int open_layers(int map, std::uint32_t& item);
  int open_binds(const std::vector<int>& maps, std::uint32_t& item);
  int open_host();
  int open_devices();

  // The new root, and into it. The old one stays mounted until leave_host().
  int mount_root(int map);
  int pivot();
  // One of the top, for the kernel's own: nothing is put where a link leads. ENOTDIR if it is none.
  int make_folder(const char* path) const;
  int mount_proc();
  int leave_host();

  // With nothing but the new root in sight.
  int attach_host();
  int attach_name_servers();
  int mount_devices();
  int mask_proc();
  int mount_tmp() const;
  int attach_binds(std::uint32_t& item);
  int make_directories(std::uint32_t& item);

  // Layers and what is written to them.
  bool is_idmapped() const { return idmapped_; }
  bool are_binds_idmapped() const { return binds_idmapped_; }
  // The directory with what was written to the root.
  Fd take_upper() { return std::move(upper_); }
  // A second hold on the tray, mounted nowhere, for who remakes the sandbox; none where the plan
  // keeps nothing.
  Fd take_tray() { return std::move(tray_); }

 private:
  struct HostPart {
    std::string target;
    Fd tree;
    std::string link;  // instead of a tree
  };

  bool is_plain() const { return plan_.layers.empty() && plan_.upper_folder.empty(); }
  // In layers, in what was written before, and, once they are there, in folders of the host.
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
  Fd name_servers_;  // the host's, for whoever has its network
  std::vector<Fd> devices_;
  Fd upper_mount_;  // the plan's folder, with the map of the layers
  Fd upper_;
  Fd tray_;
};

}  // namespace berth::keeper::sandbox
