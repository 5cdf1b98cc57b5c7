#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/holder/prefork.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <optional>
#include <string>
#include <vector>

// The files of one held place on this machine's disk. Every function may block.
namespace berth::keepers {

struct KeptFolder {
  std::string path;

  std::string keeper() const { return path + "/keeper"; }  // the keeper's state folder
  std::string workspace() const { return path + "/workspace"; }
  std::string home() const { return path + "/home"; }
  std::string scratch() const { return path + "/tmp"; }
};

// The state of a folder's keeper: `socket` is set if it is alive, `gone` if it has ended, and
// neither if there never was one.
struct KeeperAt {
  Fd socket = {};                                // it is alive, and this is a connection to it
  pid_t child = 0;                               // it was just started and must be waited for
  bool is_new = false;                           // it was just started
  std::optional<keeper::FoundKeeper> gone = {};  // it has ended or was killed
};

Result<KeeperAt> find_keeper(const KeptFolder& folder);
// Takes a new keeper from the prefork, if there is one and that succeeds.
Result<KeeperAt> find_or_start_keeper(const KeptFolder& folder, const std::string& program,
                                      const std::vector<std::string>& environment,
                                      keeper::KeeperPrefork* prefork = nullptr);
// For a keeper that is over: fails if it could not kill everything that it held.
Result<> expect_nobody_left(const KeptFolder& folder);
// Why the named place cannot start anything any more: its keeper has ended, or there never was one.
Error why_gone(const std::string& name, const std::optional<keeper::FoundKeeper>& gone);

// What the files show about a command when there is no keeper to ask.
struct CommandFiles {
  bool has_begun = false;
  std::optional<keeper::Ended> ended = {};
};
Result<CommandFiles> look_at_command(const KeptFolder& folder, const std::string& exec_id);
// Whether the wardens of a killed keeper may still be working: not if the machine has rebooted
// since.
bool is_of_this_boot(const keeper::ProcessIdentity& identity);
// Deletes the output of an ended command; does nothing if it still runs.
Result<> remove_output(const KeptFolder& folder, const std::string& exec_id);
// Deletes the output of all commands; none may still run.
Result<> remove_all_output(const KeptFolder& folder);
// Output bytes from an offset on, enough for a complete record if there is one.
Result<std::string> read_output(const KeptFolder& folder, const std::string& exec_id,
                                std::uint64_t offset);

}  // namespace berth::keepers
