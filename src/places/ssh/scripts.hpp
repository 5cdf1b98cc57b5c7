#pragma once

#include "places/place.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What is run on the remote host, as POSIX shell scripts (see RemoteShell). Each may be repeated.
// They answer with lines `#name value`; other lines are programs' error messages.
namespace berth::places::ssh {

// A line that sets a shell variable.
std::string assign(std::string_view name, std::string_view value);
// The value of the last line `#name value`.
std::optional<std::string> fact(std::string_view output, std::string_view name);
// The output without the fact lines.
std::string remarks(std::string_view output);

// Exit statuses that distinguish the scripts' failures.
namespace script_status {
inline constexpr int workspace = 10;  // cannot be made, entered or written
inline constexpr int leftovers = 11;  // cannot be removed
inline constexpr int folder = 20;     // the keeper's: cannot be made or written
inline constexpr int damaged = 21;    // what arrived differs from what was sent
inline constexpr int cannot_run = 22;
}  // namespace script_status

struct KeeperName {
  std::string file;     // "keeper-" and the beginning of the hash
  std::string sha256;   // complete
  std::string version;  // as the program reports it
};

// Where a lease's files are, on the remote host.
struct LeasePaths {
  std::string workspace;
  std::string lease_id;

  std::string root() const { return workspace + "/.berth/leases"; }
  std::string folder() const { return root() + "/" + lease_id; }
  std::string scratch() const { return folder() + "/work"; }
};

// Creates the workspace. Facts: cwd, home, path (of a login), system, machine, and keeper if a
// complete one that runs is found.
std::string survey_script(const std::string& workspace, const KeeperName& keeper);
// The folders in which a keeper may be stored, best first.
std::vector<std::string> keeper_folders(const std::string& home, const std::string& workspace);
// Reads the program from stdin, and installs it only if it is complete and runs. Fact: keeper.
std::string upload_script(const std::string& folder, const KeeperName& keeper);
// Creates the workspace and one lease's folders. Fact: cwd.
std::string enter_script(const LeasePaths& lease);
// Fact: cwd, of a folder that must exist already.
std::string visit_script(const std::string& folder, const std::string& relative_to);
// Facts: life, one of alive, ended, dead, gone; and why, if it ended.
std::string life_script(const LeasePaths& lease);
// Ends what still runs for the lease and removes its folder.
std::string remove_script(const LeasePaths& lease);
// Fact: api, the first origin whose /api/health answers. All are tried in parallel, for 5 s.
std::string callback_script(const std::vector<std::string>& origins);
// Facts: size of the output file, and record (text) if the journal has one. Then, after a line `#`,
// at most `bytes_max` bytes of the output file from the offset on.
std::string remains_script(const LeasePaths& lease, const std::string& exec_id,
                           std::uint64_t offset, std::size_t bytes_max);

}  // namespace berth::places::ssh
