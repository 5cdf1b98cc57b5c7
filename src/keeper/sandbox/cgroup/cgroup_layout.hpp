#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Which control groups our processes are in on this machine, and which of them we may divide.
// Detected once, when a keeper starts: a machine has one hierarchy with all controllers (v2), one
// per controller (v1), or both (hybrid). All our groups are made below our own group: it may have
// limits, which we must not escape.
namespace berth::keeper::sandbox {

enum class Controller : std::uint8_t { memory, cpu, pids, freezer, cpuacct, io, count_ };
inline constexpr auto controller_count = static_cast<std::size_t>(Controller::count_);
// The v2 name; v1's blkio is called io.
std::string_view name_of(Controller controller);

// In v2 no controller can be enabled below a group that contains processes. So a process that
// divides its own group moves into a leaf of it first.
inline constexpr std::string_view own_leaf = "berth.self";

// Where v1 counts bytes per device; delayed writes are not attributed to a group.
inline constexpr std::string_view legacy_io_file = "blkio.throttle.io_service_bytes";

// One mounted hierarchy, and our own group in it as a path that we can open.
struct Hierarchy {
  enum class Version : std::uint8_t { v1, v2 };
  Version version = Version::v1;
  std::vector<Controller> controllers = {};  // v1 only; v2 has them in a file
  std::string own_path = {};                 // as in /proc/self/cgroup
  std::string own_folder = {};

  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

// From the texts of /proc/self/cgroup and /proc/self/mountinfo: every mounted hierarchy in which
// our own group is visible.
std::vector<Hierarchy> find_hierarchies(std::string_view self_cgroup, std::string_view mountinfo);

// What a group's folder shows.
struct FolderView {
  bool writable = false;         // we may make groups in it and move processes there
  bool delegated = false;        // its creator lets us divide it, as systemd does by an attribute
  bool counts_io = false;        // v1: bytes of some device have been counted
  std::string controllers = {};  // v2: cgroup.controllers
  std::string subtree_control = {};  // v2: cgroup.subtree_control
};
using Look = std::function<FolderView(Hierarchy::Version version, const std::string& folder)>;
FolderView look_at_folder(Hierarchy::Version version, const std::string& folder);

// Where sandboxes' groups are made. An empty folder means that it is not available.
struct CgroupLayout {
  std::string unified = {};  // v2: life cycle, and limits of enabled controllers
  std::vector<Controller> in_unified = {};
  // To be enabled first. If necessary, our own processes move into `own_leaf`.
  std::vector<Controller> to_enable = {};
  std::array<std::string, controller_count> legacy = {};  // v1, by controller
  std::string remedy = {};                                // how to get the missing controllers

  bool has(Controller controller) const;
  const std::string& legacy_of(Controller controller) const {
    return legacy[static_cast<std::size_t>(controller)];
  }
  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

// The folders in which this layout makes groups, one per line. Recorded before the groups are made.
std::string note_of(const CgroupLayout& layout);
// The layout from such a note, for sweeping. `mountinfo` is the text of /proc/self/mountinfo: a
// line that is not a plain path in a mounted hierarchy is ignored.
CgroupLayout noted_layout(std::string_view note, std::string_view mountinfo);

// The machine's init system: systemd can also delegate groups.
enum class InitSystem : std::uint8_t { systemd, other };
InitSystem init_system();

// What else the remedy depends on, besides the groups.
struct Host {
  InitSystem init = InitSystem::systemd;
  std::uint32_t user = 0;  // the caller's uid
};

CgroupLayout choose_layout(const std::vector<Hierarchy>& hierarchies, const Look& look,
                           const Host& host);
// The layout of this machine for this process.
CgroupLayout detect_layout();

}  // namespace berth::keeper::sandbox
