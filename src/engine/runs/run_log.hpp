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

// What a run said, after redaction, on this node's disk. Two files a run: the bytes of both streams
// in order of arrival, and an index of fixed-size entries, so that reading from any place costs the
// same however long the log is. The log is a pure function of what the command wrote and of the
// secrets of the run: after a crash it is made again from the start, and what is there already is
// passed over.
namespace berth::engine {

BOOST_DEFINE_ENUM_CLASS(LogFormat, lines, raw)

struct LogRead {
  std::int64_t offset = 0;
  std::size_t bytes_max = std::size_t{256} << 10;
  LogFormat format = LogFormat::lines;
  std::optional<core::OutputStream> stream = {};  // of the raw format
};

struct LogText {
  core::RunId run_id;
  std::string content;
  std::int64_t next_offset = 0;
  bool eof = false;  // the run is over and nothing follows
};
BOOST_DESCRIBE_STRUCT(LogText, (), (run_id, content, next_offset, eof))

// Neighbouring pieces of a log. They are views of the bytes, which no move of the block moves.
struct LogBlock {
  std::unique_ptr<char[]> bytes = {};
  std::vector<core::OutputRecord> pieces = {};
};

// Blocking file work in small pieces: an append is a write to the page cache.
class RunLogWriter {
 public:
  std::int64_t size() const { return written_; }
  std::int64_t last_seq() const { return seq_; }
  // From the beginning of the run's output on, in order. Bytes that are in the file already are
  // passed over.
  Result<> append(core::OutputStream stream, Time at, std::string_view bytes);
  // The hash of all bytes. What makes them durable is RunLogs::flush.
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
  std::int64_t there_;       // bytes that an earlier process has written
  std::int64_t passed_ = 0;  // bytes of the output that came by
  std::int64_t written_;     // bytes in the file
  std::int64_t seq_;
  std::unique_ptr<EVP_MD_CTX, DigestEnd> digest_;
};

class RunLogs {
 public:
  // The folder is made when it is missing, with mode 0700.
  static Result<RunLogs> open(std::string folder);

  Result<RunLogWriter> writer(const core::RunId& run) const;
  // All that was appended is on the disk afterwards. Nobody else waits for the disk meanwhile.
  Task<> flush(const RunLogWriter& log) const;
  // Whole pieces from the one that holds `offset` on, until there are `bytes_max` bytes of them or
  // very many. None when nothing is there yet.
  Result<LogBlock> read(const core::RunId& run, std::int64_t offset, std::size_t bytes_max) const;
  // The bytes of both streams from `offset` on, whatever pieces they came in.
  Result<std::string> read_bytes(const core::RunId& run, std::int64_t offset,
                                 std::size_t bytes_max) const;
  bool has(const core::RunId& run) const;
  Result<> remove(const core::RunId& run) const;
  // The runs that have a log here.
  Result<std::vector<core::RunId>> list() const;
  // For what takes long about the output of runs.
  asio::thread_pool& pool() const { return *pool_; }
  // Of the disk that the logs are on, which is that of the home.
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
