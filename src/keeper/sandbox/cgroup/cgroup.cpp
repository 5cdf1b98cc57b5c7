#include "keeper/sandbox/cgroup/cgroup.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

namespace berth::keeper::sandbox {
namespace {

using namespace std::chrono_literals;

// How many passes move_into_leaf() makes over a group that keeps forking.
constexpr int moves_max = 16;

std::size_t index_of(Controller controller) {
  return static_cast<std::size_t>(controller);
}

std::vector<pid_t> processes_in(const std::string& folder) {
  const std::string text = read_group_file(folder + "/cgroup.procs");
  std::vector<pid_t> found;
  const char* at = text.data();
  const char* const end = at + text.size();
  pid_t pid = 0;
  for (auto next = std::from_chars(at, end, pid); next.ec == std::errc{} && next.ptr < end;
       next = std::from_chars(next.ptr + 1, end, pid)) {
    found.push_back(pid);
  }
  return found;
}

// Empties our own group, so that it may have child groups: its processes move into the leaf. The
// next pass finds processes that are forked meanwhile.
void move_into_leaf(const std::string& base) {
  const std::string leaf = base + "/" + std::string{own_leaf};
  std::vector<pid_t> left = processes_in(base);
  if (auto made = make_group_folder(leaf)) [[maybe_unused]]
    const auto kept = made->release();
  for (int look = 0; look < moves_max && !left.empty(); ++look) {
    for (const pid_t pid : left) write_group_file(leaf + "/cgroup.procs", std::to_string(pid));
    left = processes_in(base);
  }
}

bool enable(const std::string& base, Controller controller) {
  const std::string file = base + "/cgroup.subtree_control";
  const std::string word = "+" + std::string{name_of(controller)};
  if (write_group_file(file, word) == 0) return true;
  move_into_leaf(base);
  return write_group_file(file, word) == 0;
}

int move_self(int door) noexcept {
  return ::write(door, "0", 1) == 1 ? 0 : errno;
}

}  // namespace

Result<Cgroup> Cgroup::make(const CgroupLayout& layout, std::string_view id, const Limits& limits) {
  BERTH_DO(check(limits));
  Cgroup group;
  BERTH_TRY(group.name_, group_name(id));
  BERTH_DO(group.make_folders(layout));
  group.open_doors();
  group.remedy_ = layout.remedy;
  group.set_limits(limits);
  return group;
}

Result<> Cgroup::limit(const Limits& limits) {
  BERTH_DO(check(limits));
  set_limits(limits);
  return {};
}

Result<> Cgroup::make_folders(const CgroupLayout& layout) {
  const auto make = [&](const std::string& base) -> Result<std::string> {
    std::string folder = base + "/" + name_;
    const auto is_made = [&](const GroupFolder& made) { return made.get() == folder; };
    if (std::ranges::any_of(owned_, is_made)) return folder;  // one folder has several controllers
    BERTH_TRY(GroupFolder made, make_group_folder(folder));
    owned_.push_back(std::move(made));
    return folder;
  };
  if (!layout.unified.empty()) {
    std::vector<Controller> ruled = layout.in_unified;
    for (const Controller controller : layout.to_enable) {
      if (enable(layout.unified, controller)) ruled.push_back(controller);
    }
    BERTH_TRY(unified_, make(layout.unified));
    for (const Controller controller : ruled) folders_[index_of(controller)] = unified_;
  }
  for (std::size_t i = 0; i < controller_count; ++i) {
    const auto controller = static_cast<Controller>(i);
    // A v2 group freezes and counts CPU time without a controller.
    const bool needless = !unified_.empty() &&
                          (controller == Controller::freezer || controller == Controller::cpuacct);
    if (!folders_[i].empty() || layout.legacy[i].empty() || needless) continue;
    BERTH_TRY(folders_[i], make(layout.legacy[i]));
  }
  return {};
}

void Cgroup::open_doors() {
  constexpr int flags = O_WRONLY | O_CLOEXEC;
  for (const GroupFolder& folder : owned_) {
    if (folder.get() == unified_) continue;
    doors_.emplace_back(::open((folder.get() + "/tasks").c_str(), flags));
  }
  if (unified_.empty()) return;
  directory_ = Fd{::open(unified_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  unified_procs_ = unified_ + "/cgroup.procs";
}

// A single thread that moves itself through `tasks` takes no lock for its siblings. `cgroup.procs`
// takes a lock that all forks on the machine share, and waiting for it can take as long as the rest
// of the sandbox's start.
int Cgroup::join(Born born) const noexcept {
  if (born == Born::outside && !unified_procs_.empty()) {
    const int door = ::open(unified_procs_.c_str(), O_WRONLY | O_CLOEXEC);
    const int failed = door < 0 ? errno : move_self(door);
    ::close(door);
    if (failed != 0) return failed;
  }
  for (const Fd& door : doors_) {
    if (const int failed = move_self(door.get())) return failed;
  }
  return 0;
}

Fd Cgroup::open_events() const {
  if (unified_.empty()) return {};
  return Fd{::open((unified_ + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)};
}

bool Cgroup::rules(Controller controller) const {
  return !folders_[index_of(controller)].empty();
}

bool Cgroup::is_unified(Controller controller) const {
  return !unified_.empty() && folders_[index_of(controller)] == unified_;
}

std::string Cgroup::file_of(Controller controller, std::string_view unified,
                            std::string_view legacy) const {
  const std::string& folder = folders_[index_of(controller)];
  const std::string_view file = is_unified(controller) ? unified : legacy;
  return folder.empty() || file.empty() ? std::string{} : folder + "/" + std::string{file};
}

const std::string& Cgroup::lifecycle_folder() const {
  if (!unified_.empty()) return unified_;
  const std::string& freezer = folders_[index_of(Controller::freezer)];
  if (!freezer.empty() || owned_.empty()) return freezer;
  return owned_.front().get();
}

void Cgroup::set_limits(const Limits& limits) {
  unenforced_.clear();
  for (const Setting& setting : settings_of(limits)) {
    const std::string& folder = folders_[index_of(setting.controller)];
    // Without a group for the controller, the limit is reported once, under its v2 name.
    const bool as_unified = folder.empty() || is_unified(setting.controller);
    const Knob& knob = as_unified ? setting.unified : setting.legacy;
    if (knob.file.empty()) continue;
    const std::string why =
        folder.empty()
            ? "the controller " + std::string{name_of(setting.controller)} + " is not ours to use"
            : set_and_verify(folder, knob);
    if (!why.empty()) unenforced_.push_back({setting.limit, why, remedy_});
  }
}

bool Cgroup::is_populated() const {
  if (!unified_.empty()) {
    return keyed_number(read_group_file(unified_ + "/cgroup.events"), "populated") == 1U;
  }
  const std::string& folder = lifecycle_folder();
  return !folder.empty() && !processes_in(folder).empty();
}

// For kernels without cgroup.kill. A frozen group neither forks nor reaps, so the list is complete
// and its pids cannot be reused.
void Cgroup::kill_each() const {
  const bool frozen = freeze(100ms).has_value();
  for (const pid_t pid : processes_in(lifecycle_folder())) ::kill(pid, SIGKILL);
  if (frozen) [[maybe_unused]]
    const auto thawed = thaw();
}

Result<> Cgroup::kill(Wait limit) const {
  if (!is_populated()) return {};
  const bool at_once = !unified_.empty() && write_group_file(unified_ + "/cgroup.kill", "1") == 0;
  const Fd events = open_events();
  const bool ended = wait_until(events.get(), limit, [&] {
    if (!is_populated()) return true;
    if (!at_once) kill_each();
    return false;
  });
  if (ended) return {};
  return fail(Errc::timed_out, "group " + name_ + ": some of its processes cannot be killed",
              "see what they wait for: cat " + lifecycle_folder() + "/cgroup.procs");
}

Result<> Cgroup::freeze(Wait limit) const {
  const std::string& folder = lifecycle_folder();
  const bool v2 = !unified_.empty();
  if (!v2 && folders_[index_of(Controller::freezer)].empty()) {
    return fail(Errc::execution_unsupported,
                "a sandbox without control groups of its own cannot be frozen", remedy_);
  }
  const std::string file = folder + (v2 ? "/cgroup.freeze" : "/freezer.state");
  if (const int failed = write_group_file(file, v2 ? "1" : "FROZEN")) {
    return io_failure("freeze", folder.empty() ? name_ : folder, failed);
  }
  const Fd events = open_events();
  const bool still = wait_until(events.get(), limit, [&] {
    if (v2) return keyed_number(read_group_file(folder + "/cgroup.events"), "frozen") == 1U;
    return read_group_file(file).starts_with("FROZEN");
  });
  if (still) return {};
  [[maybe_unused]] const auto thawed = thaw();
  return fail(Errc::timed_out, "group " + name_ + " does not stand still");
}

Result<> Cgroup::thaw() const {
  const std::string& folder = lifecycle_folder();
  const bool v2 = !unified_.empty();
  const int failed =
      write_group_file(folder + (v2 ? "/cgroup.freeze" : "/freezer.state"), v2 ? "0" : "THAWED");
  if (failed != 0) return io_failure("thaw", folder.empty() ? name_ : folder, failed);
  return {};
}

Result<> Cgroup::remove(Wait limit) {
  // Descriptors are closed first: an open folder of a removed group keeps its memory.
  directory_ = Fd{};
  doors_.clear();
  while (!owned_.empty()) {
    BERTH_DO(remove_group(owned_.back().get(), limit));
    [[maybe_unused]] const auto gone = owned_.back().release();
    owned_.pop_back();
  }
  return {};
}

}  // namespace berth::keeper::sandbox
