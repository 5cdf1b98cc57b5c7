#pragma once

#include "workspaces/disk.hpp"
#include "workspaces/stream.hpp"

namespace berth::workspaces {

// What is done about a file with several names. refused: another name may lie outside the tree.
// taken: its content leaves under each of them, for a root that is all its programs reach (that of
// a sandbox), and for files of the one who copies them.
enum class HardLinks { refused, taken };

// Whether a thing may leave its tree as a file: regular, under one name where others are refused,
// and not made of holes. Refused with the rule otherwise.
Result<> may_leave(const struct stat& status, std::string_view shown, const Limits& limits,
                   HardLinks links = HardLinks::refused);

// A file that may leave, open for reading.
class ReadableFile {
 public:
  static Result<ReadableFile> open(const Found& found, std::string_view shown, const Limits& limits,
                                   HardLinks links = HardLinks::refused);

  const struct stat& status() const { return status_; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(status_.st_size); }
  // The whole content, exactly `bytes` of it: what a file that grows had when it was opened.
  // `conflict` when the file changed otherwise meanwhile, which the sink learns only from that: it
  // may have taken a mixture.
  Result<> copy_to(const ByteSink& sink) const;
  // So many bytes from an offset on, all of them within the file, in memory. `conflict` as above.
  Result<std::string> read_part(std::uint64_t offset, std::size_t count) const;

 private:
  ReadableFile(Fd file, const struct stat& status, std::string shown)
      : file_(std::move(file)), status_(status), shown_(std::move(shown)) {}
  Result<> check_unchanged() const;

  Fd file_;
  struct stat status_;
  std::string shown_;
};

}  // namespace berth::workspaces
