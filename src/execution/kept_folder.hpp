#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/holder/prefork.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <optional>
#include <string>
#include <vector>

// What one held place has on the disk of this machine. All of it may block.
namespace berth::execution {

struct KeptFolder {
  std::string path;

  std::string keeper() const { return path + "/keeper"; }  // the keeper's state folder
  std::string workspace() const { return path + "/workspace"; }
  std::string home() const { return path + "/home"; }
  std::string scratch() const { return path + "/tmp"; }
};

// How the keeper of a folder stands. At most one of the three is there; none of them: there never
// was a keeper.
struct KeeperAt {
  Fd socket = {};                                // it lives, and this is a connection to it
  pid_t child = 0;                               // it was started just now, and is to be waited for
  bool is_new = false;                           // it was started just now
  std::optional<keeper::FoundKeeper> gone = {};  // it has ended or was killed
};

Result<KeeperAt> find_keeper(const KeptFolder& folder);
// A new one comes from the prefork where there is one and it can.
Result<KeeperAt> find_or_start_keeper(const KeptFolder& folder, const std::string& program,
                                      const std::vector<std::string>& environment,
                                      keeper::KeeperPrefork* prefork = nullptr);
// Of a keeper that is over: whether it could kill all that it held.
Result<> expect_nobody_left(const KeptFolder& folder);
// Why what is called that can start nothing any more: its keeper is gone, or there never was one.
Error why_gone(const std::string& name, const std::optional<keeper::FoundKeeper>& gone);

// What the files say of a command when there is no keeper to ask.
struct CommandFiles {
  bool has_begun = false;
  std::optional<keeper::Ended> ended = {};
};
Result<CommandFiles> look_at_command(const KeptFolder& folder, const std::string& exec_id);
// Whether the wardens of a killed keeper may still be at work: not when the machine has been
// started again since.
bool is_of_this_boot(const keeper::ProcessIdentity& identity);
// Of a command that has ended; of one that runs nothing is removed.
Result<> remove_output(const KeptFolder& folder, const std::string& exec_id);
// Of all commands, none of which runs any more.
Result<> remove_all_output(const KeptFolder& folder);
// Bytes of the output from an offset on, enough for a whole record where there is one.
Result<std::string> read_output(const KeptFolder& folder, const std::string& exec_id,
                                std::uint64_t offset);

}  // namespace berth::execution
