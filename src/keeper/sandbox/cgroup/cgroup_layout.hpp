#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Where on this machine our processes are in the control groups, and which of those groups we may
// divide. Found by looking, once, at the start of a keeper: machines have one hierarchy with all
// controllers (v2), one for each (v1), or both (hybrid). Everything of ours is made below our own
// group: whoever put us there may have limited us, and we do not climb out.
namespace berth::keeper::sandbox {

enum class Controller : std::uint8_t { memory, cpu, pids, freezer, cpuacct, io, count_ };
inline constexpr auto controller_count = static_cast<std::size_t>(Controller::count_);
// As v2 calls it; what v1 calls blkio is io.
std::string_view name_of(Controller controller);

// Below a group of v2 that holds processes no controller can be enabled, so who divides his own
// group moves into a leaf of it first.
inline constexpr std::string_view own_leaf = "berth.self";

// Where v1 counts bytes of devices; those that it put off to write are nobody's.
inline constexpr std::string_view legacy_io_file = "blkio.throttle.io_service_bytes";

// One mounted hierarchy, and our own group in it as a path that we can open.
struct Hierarchy {
  enum class Version : std::uint8_t { v1, v2 };
  Version version = Version::v1;
  std::vector<Controller> controllers = {};  // of v1; those of v2 are in a file
  std::string own_path = {};                 // as /proc/self/cgroup has it
  std::string own_folder = {};

  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

// From the texts of /proc/self/cgroup and /proc/self/mountinfo: every hierarchy that is mounted
// where we see our own group.
std::vector<Hierarchy> find_hierarchies(std::string_view self_cgroup, std::string_view mountinfo);

// What the folder of a group shows.
struct FolderView {
  bool writable = false;   // we may make groups in it and move processes there
  bool delegated = false;  // its maker gave it away to be divided, as systemd does by an attribute
  bool counts_io = false;  // of v1: bytes of some device have been counted
  std::string controllers = {};      // of v2: cgroup.controllers
  std::string subtree_control = {};  // of v2: cgroup.subtree_control
};
using Look = std::function<FolderView(Hierarchy::Version version, const std::string& folder)>;
FolderView look_at_folder(Hierarchy::Version version, const std::string& folder);

// Where sandboxes are made. A folder that is empty is not to be had.
struct CgroupLayout {
  std::string unified = {};  // v2: life cycle, and the limits of the controllers that are enabled
  std::vector<Controller> in_unified = {};
  // To be enabled first; where that needs it, our own processes move into `own_leaf`.
  std::vector<Controller> to_enable = {};
  std::array<std::string, controller_count> legacy = {};  // v1, by controller
  std::string remedy = {};  // what gives us the controllers that we do not have

  bool has(Controller controller) const;
  const std::string& legacy_of(Controller controller) const {
    return legacy[static_cast<std::size_t>(controller)];
  }
  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

// The folders that groups of this layout are made in, one per line, to be noted before they are.
std::string note_of(const CgroupLayout& layout);
// What such a note tells, for who is to sweep there. With the text of /proc/self/mountinfo: a line
// that is no plain path in a mounted hierarchy counts for nothing.
CgroupLayout noted_layout(std::string_view note, std::string_view mountinfo);

// What started this machine: systemd also gives groups away.
enum class InitSystem : std::uint8_t { systemd, other };
InitSystem init_system();

// What the remedy depends on besides the groups.
struct Host {
  InitSystem init = InitSystem::systemd;
  std::uint32_t user = 0;  // who asks
};

CgroupLayout choose_layout(const std::vector<Hierarchy>& hierarchies, const Look& look,
                           const Host& host);
// The layout of this machine for this process.
CgroupLayout detect_layout();

}  // namespace berth::keeper::sandbox
