#pragma once

#include "workspaces/disk.hpp"
#include "workspaces/stream.hpp"

namespace berth::workspaces {

// Whether a thing may leave its tree as a file: regular, under one name only (another name may lie
// outside the tree), and not made of holes. Refused with the rule otherwise.
Result<> may_leave(const struct stat& status, std::string_view shown, const Limits& limits);

// A file that may leave, open for reading.
class ReadableFile {
 public:
  static Result<ReadableFile> open(const Found& found, std::string_view shown,
                                   const Limits& limits);

  const struct stat& status() const { return status_; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(status_.st_size); }
  // The whole content, exactly `bytes` of it. `conflict` when the file changed meanwhile, which the
  // sink learns only from that: it may have taken a mixture.
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
