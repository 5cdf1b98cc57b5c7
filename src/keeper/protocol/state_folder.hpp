#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// One keeper's folder, which is read while the keeper lives and after it has ended: `keeper` (which
// process holds it), `socket`, `log`, `execs` (the outcomes of its commands), `exec-ID.out`,
// `ended` (why it is over).
namespace berth::keeper {

inline constexpr const char* card_file = "keeper";
inline constexpr const char* socket_file = "socket";
inline constexpr const char* ended_file = "ended";
inline constexpr const char* log_file = "log";
inline constexpr std::size_t state_file_bytes_max = std::size_t{64} << 10;

std::string output_file(const std::string& exec_id);
bool is_output_file(std::string_view name);

// The process that holds a folder. A pid alone may be reused; with start time and boot id it is
// unique.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id = {};
  std::string version = {};
  std::int64_t created_us = 0;
  // The folders in which it makes control groups, one per line. After the keeper is killed, the
  // server that looks for the groups may itself be in others.
  std::string groups_in = {};
  static constexpr auto fields() {
    return std::tuple{field("pid", &ProcessIdentity::pid),
                      field("start_ticks", &ProcessIdentity::start_ticks),
                      field("boot_id", &ProcessIdentity::boot_id),
                      field("version", &ProcessIdentity::version),
                      field("created_us", &ProcessIdentity::created_us),
                      field("groups_in", &ProcessIdentity::groups_in)};
  }
};

// Why a keeper is over.
struct EndRecord {
  Outcome outcome = Outcome::stopped;
  std::string reason = {};
  std::int64_t ended_us = 0;
  std::uint32_t left_behind = 0;
  static constexpr auto fields() {
    return std::tuple{field("outcome", &EndRecord::outcome), field("reason", &EndRecord::reason),
                      field("ended_us", &EndRecord::ended_us),
                      field("left_behind", &EndRecord::left_behind)};
  }
};

// A file that atomically replaces a file of the folder. What was published survives when the
// process is killed. To survive a power cut, the caller must sync the file.
class Draft {
 public:
  explicit Draft(std::string path) : path_(std::move(path)) {}

  // Reserves room while the disk has some. If that fails, publishing may fail later.
  void reserve();
  Result<> publish(std::string_view text);

 private:
  Result<> open();

  std::string path_;
  Fd file_;
  std::size_t written_ = 0;  // so far, by reserve() or a failed publish()
};

std::int64_t wall_clock_us();
Result<ProcessIdentity> identity_of(pid_t pid);

// `alive`: the recorded process runs. `ended`: it wrote an end record. `dead`: neither.
enum class Life : std::uint8_t { alive, ended, dead };

struct FoundKeeper {
  std::string id = {};  // its folder name
  std::string folder = {};
  Life life = Life::dead;
  ProcessIdentity identity = {};
  EndRecord end_record = {};  // if ended
};

// Creates the folder that contains the state folders. They are placed away from it on the disk,
// where fewer files are deleted: ext4 takes a millisecond to create a file next to files that were
// deleted in the last minute.
Result<> make_state_root(const std::string& root);

Result<FoundKeeper> look_at_keeper(const std::string& folder);
// Every folder below the root that was ever a keeper's.
Result<std::vector<FoundKeeper>> find_keepers(const std::string& root);

}  // namespace berth::keeper
