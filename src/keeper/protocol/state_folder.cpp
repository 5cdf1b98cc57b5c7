#include "keeper/protocol/state_folder.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/text_record.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace berth::keeper {
namespace {

constexpr std::string_view output_prefix = "exec-";
constexpr std::string_view output_suffix = ".out";

// Read once: no process outlives a boot.
const Result<std::string>& boot_id() {
  static const Result<std::string> id = [] -> Result<std::string> {
    BERTH_TRY(std::string text, read_file("/proc/sys/kernel/random/boot_id", 64));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }();
  return id;
}

bool runs(const ProcessIdentity& identity) {
  const Result<ProcessIdentity> now = identity_of(identity.pid);
  return now && now->start_ticks == identity.start_ticks && now->boot_id == identity.boot_id;
}

}  // namespace

std::string output_file(const std::string& exec_id) {
  return std::string{output_prefix} + exec_id + std::string{output_suffix};
}

bool is_output_file(std::string_view name) {
  return name.starts_with(output_prefix) && name.ends_with(output_suffix);
}

Result<> Draft::open() {
  const std::string name = path_ + ".new";
  file_ = Fd{::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!file_) return io_failure("create", path_, errno);
  return {};
}

void Draft::reserve() {
  // A write allocates a block, which is room enough. Unlike a preallocated block, it never reaches
  // the disk if the file is deleted soon.
  if (open() && ::pwrite(file_.get(), "\n", 1, 0) == 1) written_ = 1;
}

Result<> Draft::publish(std::string_view text) {
  if (!file_) BERTH_DO(open());
  const ssize_t wrote = ::pwrite(file_.get(), text.data(), text.size(), 0);
  if (wrote != static_cast<ssize_t>(text.size())) {
    const int error_number = wrote < 0 ? errno : ENOSPC;
    if (wrote > 0) written_ = std::max(written_, static_cast<std::size_t>(wrote));
    return io_failure("write", path_, error_number);
  }
  if (written_ > text.size() && ::ftruncate(file_.get(), wrote) != 0) {
    return io_failure("write", path_, errno);
  }
  written_ = text.size();
  const std::string name = path_ + ".new";
  if (std::rename(name.c_str(), path_.c_str()) != 0) return io_failure("replace", path_, errno);
  file_ = Fd{};
  written_ = 0;
  return {};
}

std::int64_t wall_clock_us() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

Result<ProcessIdentity> identity_of(pid_t pid) {
  const std::optional<ProcessStat> stat = process_stat(pid);
  if (!stat || stat->state == 'Z') {
    return fail(Errc::keeper_unreachable, "process " + std::to_string(pid) + " does not run");
  }
  BERTH_TRY(std::string boot, boot_id());
  return ProcessIdentity{.pid = pid,
                         .start_ticks = stat->start_ticks,
                         .boot_id = std::move(boot),
                         .version = {},
                         .created_us = wall_clock_us(),
                         .groups_in = {}};
}

Result<> make_state_root(const std::string& root) {
  BERTH_DO(make_directories(root, 0700));
  const Fd folder{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  int flags = 0;
  // Only some file systems support this flag, and the others do not need it.
  if (folder && ::ioctl(folder.get(), FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_TOPDIR_FL;
    ::ioctl(folder.get(), FS_IOC_SETFLAGS, &flags);
  }
  return {};
}

Result<FoundKeeper> look_at_keeper(const std::string& folder) {
  FoundKeeper found{.id = folder.substr(folder.rfind('/') + 1), .folder = folder};
  BERTH_TRY(const std::string identity, read_file(folder + "/" + card_file, state_file_bytes_max));
  BERTH_TRY(found.identity, from_text<ProcessIdentity>(identity, card_file));
  if (const auto text = read_file(folder + "/" + ended_file, state_file_bytes_max)) {
    BERTH_TRY(found.end_record, from_text<EndRecord>(*text, ended_file));
    found.life = Life::ended;
  } else {
    found.life = runs(found.identity) ? Life::alive : Life::dead;
  }
  return found;
}

Result<std::vector<FoundKeeper>> find_keepers(const std::string& root) {
  BERTH_TRY(const std::vector<std::string> names, names_in(root));
  std::vector<FoundKeeper> found;
  for (const std::string& name : names) {
    Result<FoundKeeper> keeper = look_at_keeper(root + "/" + name);
    if (keeper) found.push_back(*std::move(keeper));
  }
  return found;
}

}  // namespace berth::keeper
