#pragma once

#include "base/owned.hpp"
#include "places/commands.hpp"

#include <optional>
#include <string>
#include <vector>

namespace berth::places::remote {

// How a command ended, or why its plugin refused to run it.
struct SpoolEnd {
  Ended ended = {};
  std::optional<Error> failure = {};
};

// One command of a lease on disk: that it was started, its output, and how it ended. So it can be
// followed from any offset, also by a server that started later. A plugin's command has no keeper
// that outlives the server; without an end and a running plugin call, it was lost.
class ExecSpool {
 public:
  // Creates the folder; nothing when it existed, so that a command is started only once.
  static Result<std::optional<ExecSpool>> create(const std::string& folder, Time now,
                                                 std::int64_t output_bytes_max);
  // Fails with exec_not_found when it was never started.
  static Result<ExecSpool> open(const std::string& folder);

  Time started_at() const { return started_at_; }

  // Output beyond the limit is counted and dropped; so is output that the disk did not take.
  void append(OutputKind kind, std::string_view bytes, Time now);
  Result<> finish(SpoolEnd end);
  Result<std::optional<SpoolEnd>> end() const;

  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t next_offset = 0;
    OutputKind kind = OutputKind::out;
    Time at = {};
    std::string bytes = {};
  };
  // Some of the records from the offset on; empty at the end.
  Result<std::vector<Piece>> read(std::uint64_t offset) const;

 private:
  ExecSpool(std::string folder, Fd output, Time started_at, std::int64_t output_bytes_max)
      : folder_(std::move(folder)),
        output_(std::move(output)),
        started_at_(started_at),
        bytes_left_(output_bytes_max) {}

  std::string folder_;
  Fd output_;
  Time started_at_;
  std::int64_t bytes_left_ = 0;
  std::int64_t bytes_over_limit_ = 0;
  std::int64_t bytes_lost_ = 0;
};

}  // namespace berth::places::remote
