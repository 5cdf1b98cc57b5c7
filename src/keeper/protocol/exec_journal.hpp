#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

// The outcomes of one keeper's commands: the file `execs` in its folder, to which text records are
// appended, each complete and after an empty line. A command has one record before it starts, with
// the outcome `running`, and one or two when it ends; the last one counts. A partial record, left
// by a full disk, is skipped. There is one file for all commands, because creating and deleting a
// file for each costs more than everything else that is recorded about it.
namespace berth::keeper {

inline constexpr const char* journal_file = "execs";

// Records survive when the writing process is killed. To survive a power cut, they must be synced
// by the caller.
class ExecJournal {
 public:
  explicit ExecJournal(const std::string& folder) : path_(folder + "/" + journal_file) {}

  Result<> append(const Ended& record);
  // Reserves room for this many records while the disk has some: a full disk must not hide how a
  // command ended. If that fails, appending may fail later.
  void reserve(std::size_t records);

 private:
  Result<> write(std::string_view text);

  std::string path_;
  Fd file_;          // created with the first record
  off_t block_ = 1;  // the file system's allocation unit
  off_t end_ = 0;
  off_t reserved_ = 0;
};

// The last record of a command; empty if it never began.
Result<std::optional<Ended>> find_exec(const std::string& folder, const std::string& exec_id);
// How a command ended; `exec_not_found` while it runs or if it never ran.
Result<Ended> read_exit(const std::string& folder, const std::string& exec_id);
// The last record of every command, by exec id.
Result<std::map<std::string, Ended>> read_execs(const std::string& folder);

}  // namespace berth::keeper
