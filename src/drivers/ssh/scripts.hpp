#pragma once

#include "drivers/driver.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What is asked of the other side, as scripts of a POSIX shell (see RemoteShell). Each may be
// repeated. They answer with lines `#name value`; other lines are what programs said about errors.
namespace berth::drivers::ssh {

// A line that sets a variable of the shell.
std::string assign(std::string_view name, std::string_view value);
// The value of the last line `#name value`.
std::optional<std::string> fact(std::string_view output, std::string_view name);
// The output without the lines of facts.
std::string remarks(std::string_view output);

// Exit statuses by which the scripts tell failures apart.
namespace script_status {
inline constexpr int workspace = 10;  // cannot be made, entered or written
inline constexpr int leftovers = 11;  // cannot be removed
inline constexpr int folder = 20;     // of the keeper: cannot be made or written
inline constexpr int damaged = 21;    // what arrived is not what was sent
inline constexpr int cannot_run = 22;
}  // namespace script_status

struct KeeperName {
  std::string file;     // "keeper-" and the beginning of the hash
  std::string sha256;   // all of it
  std::string version;  // what the program says of itself
};

// Where the files of a lease are, on the other side.
struct LeasePaths {
  std::string workspace;
  std::string lease_id;

  std::string root() const { return workspace + "/.berth/leases"; }
  std::string folder() const { return root() + "/" + lease_id; }
  std::string scratch() const { return folder() + "/work"; }
};

// Makes the workspace. Facts: cwd, home, path (of a login), system, machine, and keeper where a
// whole one is found that runs.
std::string survey_script(const std::string& workspace, const KeeperName& keeper);
// The folders in which a keeper may be kept, best first.
std::vector<std::string> keeper_folders(const std::string& home, const std::string& workspace);
// Takes the program from stdin, and puts it there only when it is whole and runs. Fact: keeper.
std::string upload_script(const std::string& folder, const KeeperName& keeper);
// The workspace and the folders of one lease. Fact: cwd.
std::string enter_script(const LeasePaths& lease);
// Fact: cwd of a folder that must be there already.
std::string visit_script(const std::string& folder, const std::string& relative_to);
// Fact: life, one of alive, ended, dead, gone; and why, when it ended.
std::string life_script(const LeasePaths& lease);
// Ends what still runs for the lease and removes its folder.
std::string remove_script(const LeasePaths& lease);
// Fact: api, the first origin under which /api/health answers. All are tried at once, for 5 s.
std::string callback_script(const std::vector<std::string>& origins);
// Facts: size of a file, record (text) when the other file is there; then, after a line of '#', the
// bytes of the first file from the offset on, at most so many.
std::string remains_script(const LeasePaths& lease, const std::string& exec_id,
                           std::uint64_t offset, std::size_t bytes_max);

}  // namespace berth::drivers::ssh
