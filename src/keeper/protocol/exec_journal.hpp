#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

// What became of the commands of one keeper: the file `execs` of its folder, to which text records
// are appended, each whole and behind an empty line. A command has one before it starts, with the
// outcome `running`, and one or two when it ends; the last one counts. Half a record, of a full
// disk, is passed over. One file for all of them, because making and deleting a file for each
// command costs more than all else that is written down about it.
namespace berth::keeper {

inline constexpr const char* journal_file = "execs";

// What a killed process has appended stays; that it survives a power cut too is up to whoever syncs
// the file.
class ExecJournal {
 public:
  explicit ExecJournal(const std::string& folder) : path_(folder + "/" + journal_file) {}

  Result<> append(const Ended& record);
  // Takes the room for so many records while there is some: a full disk must not hide how a
  // command ended. Where that fails, appending may fail later.
  void reserve(std::size_t records);

 private:
  Result<> write(std::string_view text);

  std::string path_;
  Fd file_;          // made for the first record
  off_t block_ = 1;  // what the file system gives out at a time
  off_t end_ = 0;
  off_t reserved_ = 0;
};

// The last record of a command; nothing when it never began.
Result<std::optional<Ended>> find_exec(const std::string& folder, const std::string& exec_id);
// How a command ended; `exec_not_found` while it runs or when it never was.
Result<Ended> read_exit(const std::string& folder, const std::string& exec_id);
// The last record of every command, by its id.
Result<std::map<std::string, Ended>> read_execs(const std::string& folder);

}  // namespace berth::keeper
