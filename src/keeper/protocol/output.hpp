#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// The output of one exec: an append-only file of records, each with its stream and time, in order
// of arrival. A record is addressed by the offset of its first byte.
namespace berth::keeper {

enum class Stream : std::uint8_t { out, err, note, count_ };

inline constexpr std::size_t record_header_bytes = 16;
inline constexpr std::size_t record_bytes_max = std::size_t{1} << 20;  // of content

struct RecordHeader {
  std::uint32_t size = 0;  // of the content that follows
  Stream stream = Stream::out;
  std::int64_t time_us = 0;  // since 1970
};
using RecordHeaderBytes = std::array<char, record_header_bytes>;
RecordHeaderBytes encode_header(const RecordHeader& header);
// Empty if the bytes are not a valid header.
std::optional<RecordHeader> decode_header(std::string_view bytes);

struct Record {
  std::uint64_t offset = 0;
  std::uint64_t next_offset = 0;
  Stream stream = Stream::out;
  std::int64_t time_us = 0;
  std::string bytes = {};
};

// What happened to the output bytes of one exec.
struct OutputCounts {
  std::uint64_t out = 0;  // written to stdout, kept or not
  std::uint64_t err = 0;
  std::uint64_t over_limit = 0;  // dropped because of the limit
  std::uint64_t lost = 0;        // dropped because the disk refused them
};

// Never returns an error: dropped bytes are counted, and reported in a note as soon as one can be
// written. A command without output has no file.
class OutputWriter {
 public:
  OutputWriter(std::string path, std::uint64_t bytes_max)
      : path_(std::move(path)), room_(bytes_max) {}

  void append(Stream stream, std::string_view bytes, std::int64_t time_us);
  // Writes a note about lost bytes that are not reported yet, if the disk allows it.
  void finish(std::int64_t time_us);

  std::uint64_t end() const { return end_; }
  const OutputCounts& counts() const { return counts_; }

 private:
  bool open();
  bool write_record(Stream stream, std::string_view bytes, std::int64_t time_us);
  bool leaves_room(std::size_t bytes);
  void note(std::string_view text, std::int64_t time_us);
  bool say_losses(std::int64_t time_us);

  std::string path_;
  Fd file_;  // created with the first record
  std::uint64_t end_ = 0;
  std::uint64_t room_;                // how much more of stdout and stderr may be kept
  std::uint64_t known_room_end_ = 0;  // the disk is known to have room up to here
  bool cut_said_ = false;
  std::uint64_t lost_unsaid_ = 0;
  int lost_errno_ = 0;
  OutputCounts counts_;
};

// Reads the file of a keeper that may still be writing it, or that died while doing so.
class OutputReader {
 public:
  // A missing file means that there is no output.
  static Result<OutputReader> open(const std::string& path, std::uint64_t offset = 0);

  // The next complete record; empty at the end, or if the last record is not complete (yet). It is
  // an error if the offset is not the start of a record or the file is damaged.
  Result<std::optional<Record>> next();
  std::uint64_t offset() const { return offset_; }

 private:
  OutputReader(Fd file, std::uint64_t offset) : file_(std::move(file)), offset_(offset) {}

  Fd file_;
  std::uint64_t offset_;
};

}  // namespace berth::keeper
