#include "places/remote/exec_spool.hpp"

#include "base/files.hpp"
#include "base/json/json.hpp"

#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::places::remote {
namespace {

constexpr std::size_t header_bytes = 16;  // kind, length, milliseconds
constexpr std::size_t record_max = std::size_t{256} << 10;
constexpr std::size_t read_max = std::size_t{1} << 20;
constexpr std::size_t end_file_max = std::size_t{1} << 20;
constexpr mode_t file_mode = 0600;
constexpr mode_t folder_mode = 0700;

struct Header {
  std::uint32_t kind = 0;
  std::uint32_t size = 0;
  std::int64_t at_ms = 0;
};
static_assert(sizeof(Header) == header_bytes);

// The contents of `ended`.
struct EndFile {
  Outcome outcome;
  std::optional<std::int64_t> exit_code;
  std::optional<std::string> signal;
  Time ended_at;
  std::int64_t bytes_over_limit;
  std::int64_t bytes_lost;
  std::optional<std::string> failure;
};
BOOST_DESCRIBE_STRUCT(EndFile, (),
                      (outcome, exit_code, signal, ended_at, bytes_over_limit, bytes_lost, failure))

struct StartFile {
  Time started_at;
};
BOOST_DESCRIBE_STRUCT(StartFile, (), (started_at))

Result<Fd> open_output(const std::string& folder, int flags) {
  const std::string path = folder + "/output";
  Fd file{::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, file_mode)};
  if (!file) return io_failure("open", path, errno);
  return file;
}

}  // namespace

Result<std::optional<ExecSpool>> ExecSpool::create(const std::string& folder, Time now,
                                                   std::int64_t output_bytes_max) {
  BERTH_DO(make_directories(folder, folder_mode));
  BERTH_TRY(Fd output, open_output(folder, O_RDWR | O_APPEND | O_CREAT));
  const Result<> made = create_file(folder + "/started", encode_text(StartFile{now}), file_mode);
  if (!made && made.error().code == Errc::conflict) return std::optional<ExecSpool>{};
  if (!made) return std::unexpected(made.error());
  return ExecSpool{folder, std::move(output), now, output_bytes_max};
}

Result<ExecSpool> ExecSpool::open(const std::string& folder) {
  const Result<std::string> text = read_file(folder + "/started", end_file_max);
  if (!text) return fail(Errc::exec_not_found, "exec " + folder + ": was never started here");
  BERTH_TRY(const bj::value json, parse_json(*text));
  BERTH_TRY(const StartFile start, decode<StartFile>(json));
  BERTH_TRY(Fd output, open_output(folder, O_RDONLY));
  return ExecSpool{folder, std::move(output), start.started_at, 0};
}

void ExecSpool::append(OutputKind kind, std::string_view bytes, Time now) {
  const auto allowed = static_cast<std::size_t>(std::max<std::int64_t>(bytes_left_, 0));
  const std::string_view kept = bytes.substr(0, std::min(bytes.size(), allowed));
  bytes_over_limit_ += static_cast<std::int64_t>(bytes.size() - kept.size());
  bytes_left_ -= static_cast<std::int64_t>(kept.size());
  std::string record;
  for (std::size_t at = 0; at < kept.size(); at += record_max) {
    const std::string_view part = kept.substr(at, record_max);
    const Header header{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(part.size()),
                        now.ms};
    record.assign(reinterpret_cast<const char*>(&header), sizeof header);
    record.append(part);
    const off_t before = ::lseek(output_.get(), 0, SEEK_END);
    const ssize_t written = ::write(output_.get(), record.data(), record.size());
    if (written == static_cast<ssize_t>(record.size())) continue;
    // A partial record would hide all that follow it.
    if (written > 0 && ::ftruncate(output_.get(), before) != 0) bytes_left_ = 0;
    bytes_lost_ += static_cast<std::int64_t>(part.size());
  }
}

Result<> ExecSpool::finish(SpoolEnd end) {
  const Ended& how = end.ended;
  EndFile file{.outcome = how.outcome,
               .exit_code = how.exit_code,
               .signal = how.signal,
               .ended_at = how.ended_at,
               .bytes_over_limit = bytes_over_limit_,
               .bytes_lost = bytes_lost_,
               .failure = {}};
  if (end.failure) file.failure = as_utf8(end.failure->message);
  return replace_file(folder_ + "/ended", encode_text(file), file_mode);
}

Result<std::optional<SpoolEnd>> ExecSpool::end() const {
  const Result<std::string> text = read_file(folder_ + "/ended", end_file_max);
  if (!text) return std::optional<SpoolEnd>{};
  BERTH_TRY(const bj::value json, parse_json(*text));
  BERTH_TRY(const EndFile file, decode<EndFile>(json));
  SpoolEnd end{.ended = {.outcome = file.outcome,
                         .exit_code = file.exit_code,
                         .signal = file.signal,
                         .started_at = started_at_,
                         .ended_at = file.ended_at,
                         .bytes_over_limit = file.bytes_over_limit,
                         .bytes_lost = file.bytes_lost}};
  if (file.failure) {
    end.failure = Error{Errc::plugin_call_failed, *file.failure};
  }
  return std::optional{std::move(end)};
}

Result<std::vector<ExecSpool::Piece>> ExecSpool::read(std::uint64_t offset) const {
  struct stat facts{};
  if (::fstat(output_.get(), &facts) != 0) return io_failure("stat", folder_ + "/output", errno);
  const auto there = static_cast<std::uint64_t>(facts.st_size);
  std::string bytes(offset < there ? std::min<std::size_t>(there - offset, read_max) : 0, '\0');
  const ssize_t size =
      ::pread(output_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (size < 0) return io_failure("read", folder_ + "/output", errno);
  std::string_view left{bytes.data(), static_cast<std::size_t>(size)};
  std::vector<Piece> pieces;
  while (left.size() >= header_bytes) {
    Header header;
    std::memcpy(&header, left.data(), sizeof header);
    if (header.kind > static_cast<std::uint32_t>(OutputKind::note) || header.size > record_max) {
      return fail(Errc::io_failed,
                  "output of " + folder_ + ": no record starts at offset " + std::to_string(offset),
                  "read from 0 or from the offset after a record");
    }
    const std::size_t whole = header_bytes + header.size;
    if (left.size() < whole) break;
    pieces.push_back({.offset = offset,
                      .next_offset = offset + whole,
                      .kind = static_cast<OutputKind>(header.kind),
                      .at = Time{header.at_ms},
                      .bytes = std::string{left.substr(header_bytes, header.size)}});
    offset += whole;
    left.remove_prefix(whole);
  }
  return pieces;
}

}  // namespace berth::places::remote
