#include "keeper/sandbox/cgroup/cgroup_layout.hpp"

#include "base/files.hpp"
#include "keeper/sandbox/cgroup/cgroup_files.hpp"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>

namespace berth::keeper::sandbox {
namespace {

constexpr std::size_t proc_file_bytes_max = std::size_t{4} << 20;

constexpr const char* no_hierarchy_remedy =
    "mount control groups: mount -t cgroup2 none /sys/fs/cgroup";
constexpr const char* by_systemd_remedy =
    "give us a group of our own: Delegate=yes in the service, or start with "
    "systemd-run --scope -p Delegate=yes (with --user for an ordinary user)";
constexpr const char* controllers_by_systemd_remedy =
    "enable the controllers for our group: Delegate=cpu memory pids in the service, or "
    "cgroup_enable=memory at boot where the kernel leaves it out";
constexpr const char* controllers_by_hand_remedy =
    "enable the controllers for our group: as root, write '+cpu +memory +pids' into the "
    "cgroup.subtree_control of each group above it; or cgroup_enable=memory at boot where the "
    "kernel leaves it out";
constexpr const char* closed_to_root_remedy =
    "control groups are closed even to root here: let the container around the server have them "
    "writable";
constexpr const char* by_hand =
    "give us a group of our own: as root, in the shell that then starts the server as our user: ";

bool holds(const auto& values, const auto& value) {
  return std::ranges::find(values, value) != std::end(values);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, separator)) {
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view line : split(text, '\n')) {
    for (const std::string_view word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
  }
  return words;
}

std::vector<Controller> controllers_among(const std::vector<std::string_view>& words) {
  std::vector<Controller> found;
  for (std::size_t i = 0; i < controller_count; ++i) {
    const auto controller = static_cast<Controller>(i);
    const bool is_blkio = controller == Controller::io && holds(words, "blkio");
    if (is_blkio || holds(words, name_of(controller))) found.push_back(controller);
  }
  return found;
}

// mountinfo encodes blanks, tabs, newlines and backslashes as three octal digits.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() &&
                        std::ranges::all_of(text.substr(i + 1, 3), is_octal);
    if (!escape) {
      plain += text[i];
      continue;
    }
    const int code = ((text[i + 1] - '0') << 6) | ((text[i + 2] - '0') << 3) | (text[i + 3] - '0');
    plain += static_cast<char>(code);
    i += 3;
  }
  return plain;
}

struct CgroupMount {
  Hierarchy::Version version = Hierarchy::Version::v1;
  std::string root = {};  // the group that the mount point shows
  std::string point = {};
  std::vector<std::string_view> options = {};  // the hierarchy's options
};

// "31 23 0:28 /root /point opts [optional fields] - type source options"
std::optional<CgroupMount> parse_mount(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto place = split(line.substr(0, dash), ' ');
  const auto kind = split(line.substr(dash + 3), ' ');
  if (place.size() < 6 || kind.size() < 3) return std::nullopt;
  if (kind[0] != "cgroup" && kind[0] != "cgroup2") return std::nullopt;
  return CgroupMount{
      .version = kind[0] == "cgroup2" ? Hierarchy::Version::v2 : Hierarchy::Version::v1,
      .root = unescaped(place[3]),
      .point = unescaped(place[4]),
      .options = split(kind[2], ',')};
}

struct OwnGroup {
  Hierarchy::Version version = Hierarchy::Version::v1;
  std::vector<std::string_view> controllers = {};  // as v1 lists them
  std::string_view path = {};
};

// "4:memory:/a/b", and for v2 "0::/a/b". A path may contain colons.
std::optional<OwnGroup> parse_own_group(std::string_view line) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view names = line.substr(first + 1, second - first - 1);
  const bool v2 = names.empty() && line.starts_with("0:");
  return OwnGroup{.version = v2 ? Hierarchy::Version::v2 : Hierarchy::Version::v1,
                  .controllers = split(names, ','),
                  .path = line.substr(second + 1)};
}

bool is_of(const CgroupMount& mount, const OwnGroup& group) {
  if (mount.version != group.version) return false;
  return group.version == Hierarchy::Version::v2 || holds(mount.options, group.controllers.front());
}

// A container may see only a part of the hierarchy: the mount shows the group `root` and what is
// below it. Empty if our own group is outside that part, or above the root of our cgroup namespace.
std::optional<std::string> folder_of(const CgroupMount& mount, std::string_view path) {
  if (path.starts_with("/..") || mount.root.starts_with("/..")) return std::nullopt;
  if (mount.root == "/") return path == "/" ? mount.point : mount.point + std::string{path};
  if (path == mount.root) return mount.point;
  if (!path.starts_with(mount.root + "/")) return std::nullopt;
  return mount.point + std::string{path.substr(mount.root.size())};
}

// No ".", ".." or empty component, which would make the path lead elsewhere than it seems.
bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/')) return false;
  return std::ranges::none_of(split(path.substr(1), '/'), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

bool is_in(const CgroupMount& mount, std::string_view folder) {
  return folder.starts_with(mount.point) &&
         (folder.size() == mount.point.size() || folder[mount.point.size()] == '/');
}

std::vector<CgroupMount> mounts_in(std::string_view mountinfo) {
  std::vector<CgroupMount> mounts;
  for (const std::string_view line : split(mountinfo, '\n')) {
    if (auto mount = parse_mount(line)) mounts.push_back(*std::move(mount));
  }
  return mounts;
}

// If we moved into our leaf, the group that we may divide is its parent.
std::string without_own_leaf(const std::string& folder) {
  const std::string leaf = "/" + std::string{own_leaf};
  return folder.ends_with(leaf) ? folder.substr(0, folder.size() - leaf.size()) : folder;
}

bool is_limit(Controller controller) {
  return controller == Controller::memory || controller == Controller::cpu ||
         controller == Controller::pids;
}

// In v2, freezing and CPU accounting need no controller. The io controller sets no limit here, but
// only it counts I/O.
bool is_enabled_in_v2(Controller controller) {
  return is_limit(controller) || controller == Controller::io;
}

// Controllers can be enabled only below a group without processes, except the machine's root group.
// We may move the processes out only if the group was delegated to us or is a whole container.
bool may_divide(const Hierarchy& own, const std::string& base, const FolderView& view) {
  return view.delegated || own.own_path == "/" || base != own.own_folder;
}

// Our groups that we may not divide, for the remedy.
struct Closed {
  std::string unified = {};
  std::vector<std::string> legacy = {};
  bool limits_are_legacy = false;  // some of them have limiting controllers
};

void choose_unified(const Hierarchy& own, const Look& look, CgroupLayout& layout, Closed& closed) {
  const std::string base = without_own_leaf(own.own_folder);
  const FolderView view = look(Hierarchy::Version::v2, base);
  if (!view.writable) {
    closed.unified = base;
    return;
  }
  layout.unified = base;
  const auto enabled = controllers_among(words_of(view.subtree_control));
  for (const Controller controller : controllers_among(words_of(view.controllers))) {
    if (!is_enabled_in_v2(controller)) continue;
    if (holds(enabled, controller)) {
      layout.in_unified.push_back(controller);
    } else if (may_divide(own, base, view)) {
      layout.to_enable.push_back(controller);
    } else if (is_limit(controller)) {
      closed.unified = base;
    }
  }
}

// Every look delays the start, so unused controllers are not looked at: a v2 group freezes and
// counts without a controller.
bool is_wanted(const Hierarchy& own, const CgroupLayout& layout) {
  return std::ranges::any_of(own.controllers, [&](Controller controller) {
    return is_enabled_in_v2(controller) ? !layout.has(controller) : layout.unified.empty();
  });
}

// The topmost visible group, which has seen all I/O. Newer kernels count no I/O in v1 until
// something is throttled, and then making and joining a group would be pointless.
std::string top_of(const Hierarchy& own) {
  if (!own.own_folder.ends_with(own.own_path)) return own.own_folder;
  return own.own_folder.substr(0, own.own_folder.size() - own.own_path.size());
}

void choose_legacy(const Hierarchy& own, const Look& look, CgroupLayout& layout, Closed& closed) {
  if (!is_wanted(own, layout)) return;
  if (!look(Hierarchy::Version::v1, own.own_folder).writable) {
    if (std::ranges::any_of(own.controllers, is_limit)) closed.limits_are_legacy = true;
    if (own.controllers != std::vector{Controller::io}) closed.legacy.push_back(own.own_folder);
    return;
  }
  for (const Controller controller : own.controllers) {
    if (controller == Controller::io && !look(Hierarchy::Version::v1, top_of(own)).counts_io) {
      continue;
    }
    layout.legacy[static_cast<std::size_t>(controller)] = own.own_folder;
  }
}

// v1 groups are never delegated, so this is done by hand, with or without systemd.
std::string legacy_remedy(const std::vector<std::string>& folders, const Host& host) {
  if (host.user == 0) return closed_to_root_remedy;
  std::string all;
  for (const std::string& folder : folders) all += " " + folder;
  return by_hand + ("for g in" + all) + "; do mkdir -p $g/berth; chown -R " +
         std::to_string(host.user) + " $g/berth; echo $$ >$g/berth/cgroup.procs; done";
}

// The shell moves into the leaf that we would use, because we may not move out of a group that was
// not delegated by the attribute. Files that appear after the chown remain root's.
std::string unified_remedy(const std::string& folder, const Host& host) {
  const std::string given = folder + "/berth";
  const std::string leaf = given + "/" + std::string{own_leaf};
  return by_hand + ("mkdir -p " + leaf) + "; chown -R " + std::to_string(host.user) + " " + given +
         "; echo $$ >" + leaf + "/cgroup.procs; for g in " + folder + " " + given +
         "; do echo '+cpu +memory +pids' >$g/cgroup.subtree_control; done";
}

std::string remedy_for(const CgroupLayout& layout, const Closed& closed, const Host& host) {
  const bool has_systemd = host.init == InitSystem::systemd;
  if (closed.limits_are_legacy) return legacy_remedy(closed.legacy, host);
  if (closed.unified.empty()) {
    return has_systemd ? controllers_by_systemd_remedy : controllers_by_hand_remedy;
  }
  if (has_systemd) return by_systemd_remedy;
  const bool is_writable = !layout.unified.empty();
  if (host.user == 0 && !is_writable) return closed_to_root_remedy;
  return unified_remedy(closed.unified, host);
}

}  // namespace

std::string_view name_of(Controller controller) {
  switch (controller) {
    case Controller::memory: return "memory";
    case Controller::cpu: return "cpu";
    case Controller::pids: return "pids";
    case Controller::freezer: return "freezer";
    case Controller::cpuacct: return "cpuacct";
    case Controller::io: return "io";
    case Controller::count_: break;
  }
  return "none";
}

bool CgroupLayout::has(Controller controller) const {
  return holds(in_unified, controller) || holds(to_enable, controller) ||
         !legacy_of(controller).empty();
}

std::vector<Hierarchy> find_hierarchies(std::string_view self_cgroup, std::string_view mountinfo) {
  const std::vector<CgroupMount> mounts = mounts_in(mountinfo);
  std::vector<Hierarchy> found;
  for (const std::string_view line : split(self_cgroup, '\n')) {
    const auto own = parse_own_group(line);
    if (!own) continue;
    for (const CgroupMount& mount : mounts) {
      if (!is_of(mount, *own)) continue;
      auto folder = folder_of(mount, own->path);
      if (!folder) continue;
      found.push_back({.version = own->version,
                       .controllers = controllers_among(own->controllers),
                       .own_path = std::string{own->path},
                       .own_folder = *std::move(folder)});
      break;
    }
  }
  return found;
}

FolderView look_at_folder(Hierarchy::Version version, const std::string& folder) {
  const bool writable = ::access(folder.c_str(), W_OK | X_OK) == 0;
  if (version == Hierarchy::Version::v1) {
    const std::string io = read_group_file(folder + "/" + std::string{legacy_io_file});
    return {.writable = writable, .counts_io = io.contains(" Read ")};
  }
  const auto has_attribute = [&](const char* name) {
    char value = 0;
    return ::getxattr(folder.c_str(), name, &value, 1) == 1 && value == '1';
  };
  return {.writable = writable && ::access((folder + "/cgroup.procs").c_str(), W_OK) == 0,
          .delegated = has_attribute("user.delegate") || has_attribute("trusted.delegate"),
          .controllers = read_group_file(folder + "/cgroup.controllers"),
          .subtree_control = read_group_file(folder + "/cgroup.subtree_control")};
}

CgroupLayout choose_layout(const std::vector<Hierarchy>& hierarchies, const Look& look,
                           const Host& host) {
  CgroupLayout layout;
  Closed closed;
  for (const Hierarchy& own : hierarchies) {
    if (own.version == Hierarchy::Version::v2) choose_unified(own, look, layout, closed);
  }
  for (const Hierarchy& own : hierarchies) {
    if (own.version == Hierarchy::Version::v1) choose_legacy(own, look, layout, closed);
  }
  const bool complete =
      layout.has(Controller::memory) && layout.has(Controller::cpu) && layout.has(Controller::pids);
  if (hierarchies.empty()) {
    layout.remedy = no_hierarchy_remedy;
  } else if (!complete) {
    layout.remedy = remedy_for(layout, closed, host);
  }
  return layout;
}

std::string note_of(const CgroupLayout& layout) {
  std::vector<std::string_view> folders{layout.unified};
  folders.insert(folders.end(), layout.legacy.begin(), layout.legacy.end());
  std::string note;
  for (auto at = folders.begin(); at != folders.end(); ++at) {
    // One folder may have several controllers.
    if (at->empty() || std::find(folders.begin(), at, *at) != at) continue;
    note.append(note.empty() ? "" : "\n").append(*at);
  }
  return note;
}

CgroupLayout noted_layout(std::string_view note, std::string_view mountinfo) {
  const std::vector<CgroupMount> mounts = mounts_in(mountinfo);
  CgroupLayout layout;
  for (const std::string_view folder : split(note, '\n')) {
    if (!is_plain_path(folder)) continue;
    // If two are mounted at one place, the later one covers the other.
    const auto covers = [&](const CgroupMount& mount) { return is_in(mount, folder); };
    const auto mount = std::ranges::find_if(mounts.rbegin(), mounts.rend(), covers);
    if (mount == mounts.rend()) continue;
    if (mount->version == Hierarchy::Version::v2) {
      layout.unified = folder;
      continue;
    }
    for (const Controller controller : controllers_among(mount->options)) {
      layout.legacy[static_cast<std::size_t>(controller)] = folder;
    }
  }
  return layout;
}

InitSystem init_system() {
  // Same test as sd_booted(3).
  return ::access("/run/systemd/system", F_OK) == 0 ? InitSystem::systemd : InitSystem::other;
}

CgroupLayout detect_layout() {
  const std::string self = read_file("/proc/self/cgroup", proc_file_bytes_max).value_or("");
  const std::string mounts = read_file("/proc/self/mountinfo", proc_file_bytes_max).value_or("");
  return choose_layout(find_hierarchies(self, mounts), look_at_folder,
                       {.init = init_system(), .user = ::geteuid()});
}

}  // namespace berth::keeper::sandbox
