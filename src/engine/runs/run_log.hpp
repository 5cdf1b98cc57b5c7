#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "base/owned.hpp"
#include "base/result.hpp"
#include "base/spare_files.hpp"
#include "base/time.hpp"
#include "core/ids.hpp"
#include "core/output/log_lines.hpp"
#include "engine/upkeep/disk_reserve.hpp"

#include <boost/asio/thread_pool.hpp>

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A run's output, after redaction, on this node's disk. Each run has two files: the bytes of both
// streams in order of arrival, and an index of fixed-size entries. So reading at any offset costs
// the same however long the log is. The log is a pure function of the command's output and the
// run's secrets. After a crash it is regenerated from the start, and bytes already present are
// skipped.
namespace berth::engine {

BOOST_DEFINE_ENUM_CLASS(LogFormat, lines, raw)

struct LogRead {
  std::int64_t offset = 0;
  std::size_t bytes_max = std::size_t{256} << 10;
  LogFormat format = LogFormat::lines;
  std::optional<core::OutputStream> stream = {};  // for the raw format
};

struct LogText {
  core::RunId run_id;
  std::string content;
  std::int64_t next_offset = 0;
  bool eof = false;  // the run has ended and nothing follows
};
BOOST_DESCRIBE_STRUCT(LogText, (), (run_id, content, next_offset, eof))

// Consecutive pieces of a log. They are views of the bytes, which remain in place when the block
// moves.
struct LogBlock {
  std::unique_ptr<char[]> bytes = {};
  std::vector<core::OutputRecord> pieces = {};
};

// Blocking file I/O in small pieces: an append is a write to the page cache.
class RunLogWriter {
 public:
  std::int64_t size() const { return written_; }
  std::int64_t last_seq() const { return seq_; }
  // Takes the run's output from its beginning, in order. Bytes already in the file are skipped.
  Result<> append(core::OutputStream stream, Time at, std::string_view bytes);
  // The hash of all bytes. RunLogs::flush makes them durable.
  Result<std::string> finish();

 private:
  friend class RunLogs;
  RunLogWriter(Fd bytes, Fd index, std::int64_t there, std::int64_t entries);
  Result<> write_entry(core::OutputStream stream, Time at, std::string_view bytes);

  struct DigestEnd {
    void operator()(EVP_MD_CTX* context) const;
  };

  Fd bytes_;
  Fd index_;
  std::int64_t there_;       // bytes written by an earlier process
  std::int64_t passed_ = 0;  // bytes of output received
  std::int64_t written_;     // bytes in the file
  std::int64_t seq_;
  std::unique_ptr<EVP_MD_CTX, DigestEnd> digest_;
};

class RunLogs {
 public:
  // The folder is created if it is missing, with mode 0700.
  static Result<RunLogs> open(std::string folder);

  Result<RunLogWriter> writer(const core::RunId& run) const;
  // Makes everything appended durable, without blocking other tasks.
  Task<> flush(const RunLogWriter& log) const;
  // Complete pieces from the one that contains `offset`, until they have `bytes_max` bytes or are
  // very many. Empty when there is nothing yet.
  Result<LogBlock> read(const core::RunId& run, std::int64_t offset, std::size_t bytes_max) const;
  // The bytes of both streams from `offset` on, regardless of pieces.
  Result<std::string> read_bytes(const core::RunId& run, std::int64_t offset,
                                 std::size_t bytes_max) const;
  bool has(const core::RunId& run) const;
  Result<> remove(const core::RunId& run) const;
  // The runs that have a log here.
  Result<std::vector<core::RunId>> list() const;
  // For slow work on run output.
  asio::thread_pool& pool() const { return *pool_; }
  // The reserve of the logs' disk, which is the home's disk.
  DiskReserve reserve() const { return DiskReserve{folder_}; }

 private:
  explicit RunLogs(std::string folder);
  std::string bytes_file(const core::RunId& run) const;
  std::string index_file(const core::RunId& run) const;

  std::string folder_;
  std::unique_ptr<SpareFiles> new_files_;
  std::unique_ptr<asio::thread_pool> pool_ = std::make_unique<asio::thread_pool>(2);
};

}  // namespace berth::engine
