#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/sandbox/cgroup/cgroup_files.hpp"
#include "keeper/sandbox/cgroup/cgroup_layout.hpp"
#include "keeper/sandbox/cgroup/cgroup_settings.hpp"
#include "keeper/sandbox/limits.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The control groups of one sandbox: its limits, its usage, and the reliable way to end it.
namespace berth::keeper::sandbox {

// A requested limit that is not in force, and what would fix that.
struct Unenforced {
  std::string limit = {};
  std::string why = {};
  std::string remedy = {};
};

// A value is absent if this machine does not count it.
struct CgroupUsage {
  std::optional<std::uint64_t> cpu_user_us = {};
  std::optional<std::uint64_t> cpu_system_us = {};
  std::optional<std::uint64_t> throttled_us = {};  // not run because of the quota
  std::optional<std::uint64_t> memory_bytes = {};
  std::optional<std::uint64_t> memory_peak_bytes = {};
  std::optional<std::uint64_t> pids = {};
  std::optional<std::uint64_t> pids_peak = {};
  std::optional<std::uint64_t> io_read_bytes = {};
  std::optional<std::uint64_t> io_written_bytes = {};
  std::uint64_t oom_kills = 0;
};

class Cgroup {
 public:
  using Wait = std::chrono::milliseconds;
  static constexpr Wait usual_wait{10'000};

  // Makes the groups and sets the limits. The id has the form of an exec id. On a machine without
  // control groups the Cgroup is empty, and `unenforced` lists the limits.
  static Result<Cgroup> make(const CgroupLayout& layout, std::string_view id, const Limits& limits);
  // Replaces the limits.
  Result<> limit(const Limits& limits);
  // Adopts existing groups by their folder name, to end them.
  static Cgroup adopt(const CgroupLayout& layout, const std::string& name);

  const std::vector<Unenforced>& unenforced() const { return unenforced_; }
  // Whether there is a group with this controller, so that its limits can be set.
  bool rules(Controller controller) const;
  const std::string& name() const { return name_; }

  // For clone3 with CLONE_INTO_CGROUP: the v2 group, or -1. Starting a child in it costs nothing;
  // moving it there later costs milliseconds.
  int directory() const { return directory_.get(); }
  // Moves the calling process, which must have a single thread, into the v1 groups, and into the v2
  // group if it was not started there. Safe between vfork and exec. Returns 0 or errno. A cgroup
  // namespace must be made after this: its root is its creator's group.
  enum class Born : std::uint8_t { inside, outside };
  int join(Born born) const noexcept;

  // Kills all processes, even stopped, frozen or forking ones, and waits for their end.
  Result<> kill(Wait limit = usual_wait) const;
  // Returns when every process is frozen.
  Result<> freeze(Wait limit = usual_wait) const;
  Result<> thaw() const;
  bool is_populated() const;

  // Since the group was made.
  CgroupUsage usage() const;
  std::uint64_t oom_kills() const;

  // The group must be empty. Afterwards nothing of it is left.
  Result<> remove(Wait limit = usual_wait);

 private:
  Result<> make_folders(const CgroupLayout& layout);
  void open_doors();
  // The path of this controller's file, which has different names in v2 and v1; empty if the
  // controller is not available.
  std::string file_of(Controller controller, std::string_view unified,
                      std::string_view legacy) const;
  bool is_unified(Controller controller) const;
  // v2 only: signals when the last process has ended or is frozen.
  Fd open_events() const;
  // The folder that lists every process of the group; empty if there is no group.
  const std::string& lifecycle_folder() const;
  void kill_each() const;
  void set_limits(const Limits& limits);

  std::string name_;
  std::string remedy_;
  std::vector<Unenforced> unenforced_;
  std::string unified_;
  std::array<std::string, controller_count> folders_;  // by controller
  std::vector<GroupFolder> owned_;
  Fd directory_;
  std::vector<Fd> doors_;      // the v1 `tasks` files
  std::string unified_procs_;  // for processes that were not started in the v2 group
};

// The name of a group made by this process: an id and its maker.
Result<std::string> group_name(std::string_view id);
// Our groups whose keeper has ended.
std::vector<std::string> find_leftovers(const CgroupLayout& layout);
// Ends and removes them. Returns the names of those that could not be removed.
std::vector<std::string> sweep_leftovers(const CgroupLayout& layout);
// The same in the folders that a killed keeper's note lists.
std::vector<std::string> sweep_noted_leftovers(std::string_view note);

}  // namespace berth::keeper::sandbox
