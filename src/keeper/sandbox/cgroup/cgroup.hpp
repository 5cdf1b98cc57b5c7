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

// The control groups of one sandbox: its limits, what it has used, and the sure way to end it.
namespace berth::keeper::sandbox {

// A limit that was asked for and is not in force, and what would mend that.
struct Unenforced {
  std::string limit = {};
  std::string why = {};
  std::string remedy = {};
};

// What is absent this machine does not count.
struct CgroupUsage {
  std::optional<std::uint64_t> cpu_user_us = {};
  std::optional<std::uint64_t> cpu_system_us = {};
  std::optional<std::uint64_t> throttled_us = {};  // kept from running by the quota
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

  // Makes the groups and sets the limits. The id is an exec id or like one. A machine without
  // control groups yields a Cgroup that holds nothing, and says so in `unenforced`.
  static Result<Cgroup> make(const CgroupLayout& layout, std::string_view id, const Limits& limits);
  // Other limits than it was made with.
  Result<> limit(const Limits& limits);
  // Groups that are there already, by the name of their folder, to be ended.
  static Cgroup adopt(const CgroupLayout& layout, const std::string& name);

  const std::vector<Unenforced>& unenforced() const { return unenforced_; }
  // Whether there is a group of this controller, for a limit to be set.
  bool rules(Controller controller) const;
  const std::string& name() const { return name_; }

  // For clone3 with CLONE_INTO_CGROUP: the group of v2, or -1. The child is born in it, which costs
  // nothing; to move there afterwards costs milliseconds.
  int directory() const { return directory_.get(); }
  // Moves the calling process, which must have one thread, into the groups of v1, and into that of
  // v2 where it was not born there. Safe between vfork and exec. 0 or errno. A cgroup namespace is
  // made after this: its root is where its maker is.
  enum class Born : std::uint8_t { inside, outside };
  int join(Born born) const noexcept;

  // Kills all processes, also those that are stopped, frozen or forking, and waits for the end.
  Result<> kill(Wait limit = usual_wait) const;
  // Returns when every process stands still.
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
  // The file of the folder that rules this controller, by its name in v2 and in v1; empty when
  // nobody does.
  std::string file_of(Controller controller, std::string_view unified,
                      std::string_view legacy) const;
  bool is_unified(Controller controller) const;
  // Of v2: tells when the last process is gone or stands still.
  Fd open_events() const;
  // Where every process of the group is found; empty when there is no group.
  const std::string& lifecycle_folder() const;
  void kill_each() const;
  void set_limits(const Limits& limits);

  std::string name_;
  std::string remedy_;
  std::vector<Unenforced> unenforced_;
  std::string unified_;
  std::array<std::string, controller_count> folders_;  // that rule each controller
  std::vector<GroupFolder> owned_;
  Fd directory_;
  std::vector<Fd> doors_;      // the `tasks` files of v1
  std::string unified_procs_;  // the door of v2, for who was not born inside
};

// The name of a group made by this process: an id, and who made it.
Result<std::string> group_name(std::string_view id);
// Groups of ours whose keeper is gone.
std::vector<std::string> find_leftovers(const CgroupLayout& layout);
// Ends and removes them. The names of those that would not go.
std::vector<std::string> sweep_leftovers(const CgroupLayout& layout);
// The same where the note of a killed keeper says that it made groups.
std::vector<std::string> sweep_noted_leftovers(std::string_view note);

}  // namespace berth::keeper::sandbox
