#pragma once

#include "files/beneath.hpp"
#include "files/stream.hpp"

namespace berth::files {

// What to do about a file with several names. refused: another name may be outside the tree. taken:
// its content is copied under each name. That is for a root that is all that its programs can reach
// (a sandbox's), and for files that belong to the copying user.
enum class HardLinks { refused, taken };

// Whether an entry may leave its tree as a file: regular, with one name if others are refused, and
// not sparse. Otherwise refused, with the rule.
Result<> may_leave(const struct stat& status, std::string_view shown, const Limits& limits,
                   HardLinks links = HardLinks::refused);

// A file that may leave, open for reading.
class ReadableFile {
 public:
  static Result<ReadableFile> open(const Found& found, std::string_view shown, const Limits& limits,
                                   HardLinks links = HardLinks::refused);

  const struct stat& status() const { return status_; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(status_.st_size); }
  // The whole content, exactly `bytes` of it: if a file grows, what it had when it was opened.
  // `conflict` if the file changed in another way meanwhile. Only that error shows the sink that it
  // may have received a mixture.
  Result<> copy_to(const ByteSink& sink) const;
  // `count` bytes from an offset on, all within the file, in memory. `conflict` as above.
  Result<std::string> read_part(std::uint64_t offset, std::size_t count) const;

 private:
  ReadableFile(Fd file, const struct stat& status, std::string shown)
      : file_(std::move(file)), status_(status), shown_(std::move(shown)) {}
  Result<> check_unchanged() const;

  Fd file_;
  struct stat status_;
  std::string shown_;
};

}  // namespace berth::files
