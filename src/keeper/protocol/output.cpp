#include "keeper/protocol/output.hpp"

#include "base/disk_room.hpp"
#include "base/files.hpp"
#include "keeper/protocol/wire.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace berth::keeper {
namespace {

// Returns the bytes read; fewer than requested only at the end of the file.
Result<std::size_t> read_at(int fd, std::span<char> into, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", "output", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

RecordHeaderBytes encode_header(const RecordHeader& header) {
  std::string bytes;
  WireWriter writer{bytes};
  writer.put(header.size);
  writer.put(header.stream);
  writer.put(std::uint8_t{0});   // flags
  writer.put(std::uint16_t{0});  // reserved
  writer.put(header.time_us);
  RecordHeaderBytes out{};
  std::ranges::copy(bytes, out.begin());
  return out;
}

std::optional<RecordHeader> decode_header(std::string_view bytes) {
  WireReader reader{bytes};
  RecordHeader header;
  std::uint8_t flags = 0;
  std::uint16_t reserved = 0;
  const bool good = reader.get(header.size) && reader.get(header.stream) && reader.get(flags) &&
                    reader.get(reserved) && reader.get(header.time_us);
  if (!good || flags != 0 || reserved != 0 || header.size == 0 || header.size > record_bytes_max) {
    return std::nullopt;
  }
  return header;
}

bool OutputWriter::open() {
  if (file_) return true;
  file_ = Fd{::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file_) lost_errno_ = errno;
  return bool{file_};
}

// A command with too much output must not fill the disk, where the outcomes of other commands are
// recorded; and a reader of this output may write as much again to its own log.
bool OutputWriter::leaves_room(std::size_t bytes) {
  constexpr std::uint64_t look_again_after = std::uint64_t{1} << 20;
  const std::uint64_t end = end_ + bytes;
  if (end <= known_room_end_) return true;
  struct statvfs disk{};
  if (::fstatvfs(file_.get(), &disk) != 0 || disk.f_blocks == 0) return true;
  const std::uint64_t reserve = disk_reserve(disk.f_blocks * disk.f_frsize);
  const std::uint64_t available = disk.f_bavail * disk.f_frsize;
  if (available < reserve + end + bytes) {
    lost_errno_ = ENOSPC;
    return false;
  }
  known_room_end_ = end + std::min(look_again_after, (available - reserve - end - bytes) / 2);
  return true;
}

bool OutputWriter::write_record(Stream stream, std::string_view bytes, std::int64_t time_us) {
  if (!open() || (stream != Stream::note && !leaves_room(bytes.size()))) return false;
  RecordHeaderBytes header = encode_header(
      {.size = static_cast<std::uint32_t>(bytes.size()), .stream = stream, .time_us = time_us});
  std::array<iovec, 2> parts{iovec{header.data(), header.size()},
                             iovec{const_cast<char*>(bytes.data()), bytes.size()}};
  std::uint64_t at = end_;
  const std::uint64_t whole = end_ + header.size() + bytes.size();
  iovec* part = parts.data();
  while (at < whole) {
    const int count = static_cast<int>(parts.data() + parts.size() - part);
    const ssize_t wrote = ::pwritev(file_.get(), part, count, static_cast<off_t>(at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      lost_errno_ = errno;
      // A reader must never take a partial record for the start of the next one.
      if (at > end_ && ::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0) return false;
      return false;
    }
    at += static_cast<std::uint64_t>(wrote);
    auto left = static_cast<std::size_t>(wrote);
    while (part != parts.data() + parts.size() && left >= part->iov_len) {
      left -= part->iov_len;
      ++part;
    }
    if (left > 0) {
      part->iov_base = static_cast<char*>(part->iov_base) + left;
      part->iov_len -= left;
    }
  }
  end_ = whole;
  return true;
}

void OutputWriter::note(std::string_view text, std::int64_t time_us) {
  write_record(Stream::note, text, time_us);
}

bool OutputWriter::say_losses(std::int64_t time_us) {
  if (lost_unsaid_ == 0) return true;
  std::array<char, 128> reason{};
  const std::string text = "lost " + std::to_string(lost_unsaid_) + " bytes of output: " +
                           ::strerror_r(lost_errno_, reason.data(), reason.size());
  if (!write_record(Stream::note, text, time_us)) return false;
  lost_unsaid_ = 0;
  return true;
}

void OutputWriter::append(Stream stream, std::string_view bytes, std::int64_t time_us) {
  (stream == Stream::err ? counts_.err : counts_.out) += bytes.size();
  const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(room_, bytes.size()));
  for (std::string_view rest = bytes.substr(0, kept); !rest.empty();) {
    const std::string_view piece = rest.substr(0, record_bytes_max);
    if (!say_losses(time_us) || !write_record(stream, piece, time_us)) {
      counts_.lost += piece.size();
      lost_unsaid_ += piece.size();
    }
    rest.remove_prefix(piece.size());
  }
  room_ -= kept;
  if (kept == bytes.size()) return;
  counts_.over_limit += bytes.size() - kept;
  if (std::exchange(cut_said_, true)) return;
  note("output limit reached after " +
           std::to_string(counts_.out + counts_.err - bytes.size() + kept) +
           " bytes; what follows is not kept, the exit record counts it",
       time_us);
}

void OutputWriter::finish(std::int64_t time_us) {
  say_losses(time_us);
}

Result<OutputReader> OutputReader::open(const std::string& path, std::uint64_t offset) {
  Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file && errno != ENOENT) return io_failure("open", path, errno);
  return OutputReader{std::move(file), offset};
}

Result<std::optional<Record>> OutputReader::next() {
  if (!file_) return std::nullopt;
  RecordHeaderBytes bytes{};
  BERTH_TRY(const std::size_t got, read_at(file_.get(), bytes, offset_));
  // A power cut leaves zeros in place of a tail that never reached the disk.
  if (got < bytes.size() || bytes == RecordHeaderBytes{}) return std::nullopt;
  const auto header = decode_header({bytes.data(), bytes.size()});
  if (!header) {
    return fail(Errc::io_failed, "output: no record starts at offset " + std::to_string(offset_),
                "read from 0 or from the offset after a record");
  }
  Record record{.offset = offset_,
                .next_offset = offset_ + record_header_bytes + header->size,
                .stream = header->stream,
                .time_us = header->time_us,
                .bytes = std::string(header->size, '\0')};
  BERTH_TRY(const std::size_t content,
            read_at(file_.get(), record.bytes, offset_ + record_header_bytes));
  if (content < header->size) return std::nullopt;
  offset_ = record.next_offset;
  return record;
}

}  // namespace berth::keeper
