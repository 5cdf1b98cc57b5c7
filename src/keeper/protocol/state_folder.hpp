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

// The folder of one keeper, and what is read from it while the keeper lives and after it is gone:
// `keeper` (who holds it), `socket`, `log`, `execs` (what became of its commands), `exec-ID.out`,
// `ended` (why it is over).
namespace berth::keeper {

inline constexpr const char* card_file = "keeper";
inline constexpr const char* socket_file = "socket";
inline constexpr const char* ended_file = "ended";
inline constexpr const char* log_file = "log";
inline constexpr std::size_t state_file_bytes_max = std::size_t{64} << 10;

std::string output_file(const std::string& exec_id);
bool is_output_file(std::string_view name);

// Who holds a folder. A pid alone may be reused; with its start time and the boot it may not.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id = {};
  std::string version = {};
  std::int64_t created_us = 0;
  // In which folders it makes control groups, one per line: the server that finds them after a kill
  // may itself be in other groups.
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

// What will replace a file of the folder, whole. What a killed process has published stays; that it
// survives a power cut too is up to whoever syncs the file.
class Draft {
 public:
  explicit Draft(std::string path) : path_(std::move(path)) {}

  // Takes the room while there is some. Where that fails, publishing may fail later.
  void reserve();
  Result<> publish(std::string_view text);

 private:
  Result<> open();

  std::string path_;
  Fd file_;
  std::size_t written_ = 0;  // so far, by reserve() or a publishing that failed
};

std::int64_t wall_clock_us();
Result<ProcessIdentity> identity_of(pid_t pid);

// `alive`: the process of the card runs. `ended`: it said goodbye. `dead`: it did neither.
enum class Life : std::uint8_t { alive, ended, dead };

struct FoundKeeper {
  std::string id = {};  // the name of its folder
  std::string folder = {};
  Life life = Life::dead;
  ProcessIdentity identity = {};
  EndRecord end_record = {};  // when ended
};

// The folder that state folders are in. They lie apart from it on the disk, where others delete
// less: ext4 makes files slowly, a millisecond each, next to those that were deleted in the last
// minute.
Result<> make_state_root(const std::string& root);

Result<FoundKeeper> look_at_keeper(const std::string& folder);
// Every folder below the root that has ever been a keeper's.
Result<std::vector<FoundKeeper>> find_keepers(const std::string& root);

}  // namespace berth::keeper
