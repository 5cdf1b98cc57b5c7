#include "engine/runs/run_log.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>

#include <openssl/evp.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace berth::engine {
namespace {

constexpr std::size_t piece_bytes_max = std::size_t{64} << 10;
// Of a command that says little at a time, however many bytes are asked for.
constexpr std::size_t block_pieces_max = std::size_t{8} << 10;
constexpr std::size_t entries_a_read = 1024;

// One piece of the log: where its bytes begin in the other file, and what they are.
struct IndexEntry {
  std::int64_t offset = 0;
  std::int64_t at_ms = 0;
  std::uint32_t size = 0;
  std::uint8_t stream = 0;
  std::array<std::uint8_t, 3> unused = {};
};
static_assert(sizeof(IndexEntry) == 24);
constexpr auto entry_bytes = static_cast<std::int64_t>(sizeof(IndexEntry));

std::int64_t end_of(const IndexEntry& entry) {
  return entry.offset + entry.size;
}

Result<Fd> open_file(const std::string& path, int flags) {
  Fd file{::open(path.c_str(), flags | O_CLOEXEC, 0600)};
  if (!file) return io_failure("open", path, errno);
  return file;
}

Result<std::int64_t> size_of(const Fd& file) {
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return io_failure("stat", "a run's log", errno);
  return facts.st_size;
}

Result<> write_at(const Fd& file, std::string_view bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return io_failure("write", "a run's log", errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += done;
  }
  return {};
}

Result<> read_at(const Fd& file, std::span<char> into, std::int64_t offset) {
  while (!into.empty()) {
    const ssize_t done = ::pread(file.get(), into.data(), into.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return io_failure("read", "a run's log", errno);
    if (done == 0) return fail(Errc::io_failed, "a run's log is shorter than its index says");
    into = into.subspan(static_cast<std::size_t>(done));
    offset += done;
  }
  return {};
}

Result<IndexEntry> entry_at(const Fd& index, std::int64_t number) {
  std::array<char, sizeof(IndexEntry)> bytes{};
  BERTH_DO(read_at(index, bytes, number * entry_bytes));
  IndexEntry entry;
  std::memcpy(&entry, bytes.data(), sizeof entry);
  return entry;
}

Result<> sync(int file) {
  if (::fdatasync(file) == 0) return {};
  return io_failure("sync", "a run's log", errno);
}

// The number of bytes in complete pieces.
Result<std::int64_t> bytes_known(const Fd& index, std::int64_t count) {
  if (count == 0) return 0;
  BERTH_TRY(const IndexEntry last, entry_at(index, count - 1));
  return end_of(last);
}

// The index of the piece that contains the offset; `count` when none does yet.
Result<std::int64_t> find_entry(const Fd& index, std::int64_t count, std::int64_t offset) {
  std::int64_t low = 0;
  std::int64_t high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    BERTH_TRY(const IndexEntry entry, entry_at(index, middle));
    if (end_of(entry) > offset) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Reads consecutive entries into `into`.
Result<> read_entries(const Fd& index, std::int64_t number, std::span<IndexEntry> into) {
  const std::span<std::byte> bytes = std::as_writable_bytes(into);
  BERTH_DO(
      read_at(index, {reinterpret_cast<char*>(bytes.data()), bytes.size()}, number * entry_bytes));
  for (std::size_t i = 0; i < into.size(); ++i) {
    const bool follows = i == 0 || into[i].offset == end_of(into[i - 1]);
    if (!follows || into[i].offset < 0 || into[i].size > piece_bytes_max) {
      return fail(Errc::io_failed, "a run's log has an index that does not fit together");
    }
  }
  return {};
}

// Entries starting at `number`, until their pieces have `bytes_max` bytes.
Result<std::vector<IndexEntry>> entries_from(const Fd& index, std::int64_t number,
                                             std::int64_t count, std::size_t bytes_max) {
  std::vector<IndexEntry> entries;
  std::size_t bytes = 0;
  while (number < count && bytes < bytes_max && entries.size() < block_pieces_max) {
    const std::size_t known = entries.size();
    const auto left = static_cast<std::size_t>(count - number);
    entries.resize(known + std::min(entries_a_read, left));
    // The last known entry is read again, to check that the new ones follow it.
    const std::size_t again = known > 0 ? 1 : 0;
    BERTH_DO(read_entries(index, number - static_cast<std::int64_t>(again),
                          std::span{entries}.subspan(known - again)));
    std::size_t taken = known;
    while (taken < entries.size() && bytes < bytes_max) bytes += entries[taken++].size;
    entries.resize(taken);
    number += static_cast<std::int64_t>(taken - known);
  }
  return entries;
}

Error no_hash() {
  return {Errc::bug, "OpenSSL gave no SHA-256"};
}

}  // namespace

void RunLogWriter::DigestEnd::operator()(EVP_MD_CTX* context) const {
  ::EVP_MD_CTX_free(context);
}

RunLogWriter::RunLogWriter(Fd bytes, Fd index, std::int64_t there, std::int64_t entries)
    : bytes_(std::move(bytes)),
      index_(std::move(index)),
      there_(there),
      written_(there),
      seq_(entries),
      digest_(::EVP_MD_CTX_new()) {
  ::EVP_DigestInit_ex(digest_.get(), ::EVP_sha256(), nullptr);
}

Result<> RunLogWriter::append(core::OutputStream stream, Time at, std::string_view bytes) {
  if (bytes.empty()) return {};
  ::EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size());
  const std::int64_t known = std::min<std::int64_t>(std::max<std::int64_t>(there_ - passed_, 0),
                                                    static_cast<std::int64_t>(bytes.size()));
  passed_ += static_cast<std::int64_t>(bytes.size());
  bytes.remove_prefix(static_cast<std::size_t>(known));
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_bytes_max);
    BERTH_DO(write_entry(stream, at, piece));
    bytes.remove_prefix(piece.size());
  }
  return {};
}

Result<> RunLogWriter::write_entry(core::OutputStream stream, Time at, std::string_view bytes) {
  // The index is written last: a piece exists once its entry does.
  BERTH_DO(write_at(bytes_, bytes, written_));
  const IndexEntry entry{.offset = written_,
                         .at_ms = at.ms,
                         .size = static_cast<std::uint32_t>(bytes.size()),
                         .stream = static_cast<std::uint8_t>(stream)};
  std::array<char, sizeof(IndexEntry)> text{};
  std::memcpy(text.data(), &entry, sizeof entry);
  BERTH_DO(write_at(index_, {text.data(), text.size()}, seq_ * entry_bytes));
  written_ += static_cast<std::int64_t>(bytes.size());
  ++seq_;
  return {};
}

Result<std::string> RunLogWriter::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (::EVP_DigestFinal_ex(digest_.get(), hash.data(), &size) != 1) {
    return std::unexpected(no_hash());
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (unsigned at = 0; at < size; ++at) {
    text += digits[hash[at] >> 4];
    text += digits[hash[at] & 15];
  }
  return text;
}

RunLogs::RunLogs(std::string folder)
    : folder_(std::move(folder)), new_files_(std::make_unique<SpareFiles>(folder_)) {}

Result<RunLogs> RunLogs::open(std::string folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return io_failure("mkdir", folder, errno);
  }
  return RunLogs{std::move(folder)};
}

std::string RunLogs::bytes_file(const core::RunId& run) const {
  return folder_ + "/" + run.str() + ".log";
}

std::string RunLogs::index_file(const core::RunId& run) const {
  return folder_ + "/" + run.str() + ".index";
}

Result<std::vector<core::RunId>> RunLogs::list() const {
  constexpr std::string_view suffix = ".log";
  BERTH_TRY(const std::vector<std::string> names, names_in(folder_));
  std::vector<core::RunId> runs;
  for (const std::string_view name : names) {
    if (!name.ends_with(suffix)) continue;
    const auto run = core::RunId::parse(name.substr(0, name.size() - suffix.size()));
    if (run) runs.push_back(*run);
  }
  return runs;
}

bool RunLogs::has(const core::RunId& run) const {
  return ::access(index_file(run).c_str(), F_OK) == 0;
}

Result<RunLogWriter> RunLogs::writer(const core::RunId& run) const {
  BERTH_TRY(Fd bytes, new_files_->open(bytes_file(run)));
  BERTH_TRY(Fd index, new_files_->open(index_file(run)));
  BERTH_TRY(const std::int64_t bytes_there, size_of(bytes));
  BERTH_TRY(const std::int64_t index_there, size_of(index));
  std::int64_t entries = index_there / entry_bytes;
  BERTH_TRY(std::int64_t there, bytes_known(index, entries));
  // After a power cut the index may list more than the disk has: everything is rewritten.
  if (there > bytes_there) there = entries = 0;
  const std::int64_t index_bytes = entries * entry_bytes;
  if ((bytes_there != there && ::ftruncate(bytes.get(), there) != 0) ||
      (index_there != index_bytes && ::ftruncate(index.get(), index_bytes) != 0)) {
    return io_failure("truncate", bytes_file(run), errno);
  }
  return RunLogWriter{std::move(bytes), std::move(index), there, entries};
}

Task<> RunLogs::flush(const RunLogWriter& log) const {
  using namespace asio::experimental::awaitable_operators;
  if (log.size() == 0) co_return Result<>{};
  const int bytes = log.bytes_.get();
  const int index = log.index_.get();
  // In parallel they take hardly longer than one of them.
  const auto [first, second] = co_await (offload(*pool_, [bytes] { return sync(bytes); }) &&
                                         offload(*pool_, [index] { return sync(index); }));
  // By now, runs with output have taken their spare files.
  asio::post(*pool_, [files = new_files_.get()] { files->restock(); });
  co_return first ? second : first;
}

Result<LogBlock> RunLogs::read(const core::RunId& run, std::int64_t offset,
                               std::size_t bytes_max) const {
  LogBlock block;
  if (!has(run)) return block;
  BERTH_TRY(const Fd index, open_file(index_file(run), O_RDONLY));
  BERTH_TRY(const Fd bytes, open_file(bytes_file(run), O_RDONLY));
  BERTH_TRY(const std::int64_t index_size, size_of(index));
  const std::int64_t count = index_size / entry_bytes;
  BERTH_TRY(std::int64_t seq, find_entry(index, count, offset));
  BERTH_TRY(const std::vector<IndexEntry> entries,
            entries_from(index, seq, count, std::max<std::size_t>(bytes_max, 1)));
  if (entries.empty()) return block;
  const std::int64_t begin = entries.front().offset;
  const auto size = static_cast<std::size_t>(end_of(entries.back()) - begin);
  block.bytes = std::make_unique_for_overwrite<char[]>(size);
  BERTH_DO(read_at(bytes, {block.bytes.get(), size}, begin));
  block.pieces.reserve(entries.size());
  for (const IndexEntry& entry : entries) {
    block.pieces.push_back({.seq = ++seq,
                            .offset = entry.offset,
                            .at = Time{entry.at_ms},
                            .stream = static_cast<core::OutputStream>(entry.stream),
                            .bytes = {block.bytes.get() + (entry.offset - begin), entry.size}});
  }
  return block;
}

Result<std::string> RunLogs::read_bytes(const core::RunId& run, std::int64_t offset,
                                        std::size_t bytes_max) const {
  if (!has(run)) return std::string{};
  BERTH_TRY(const Fd index, open_file(index_file(run), O_RDONLY));
  BERTH_TRY(const Fd bytes, open_file(bytes_file(run), O_RDONLY));
  BERTH_TRY(const std::int64_t index_size, size_of(index));
  BERTH_TRY(const std::int64_t end, bytes_known(index, index_size / entry_bytes));
  if (offset >= end) return std::string{};
  std::string text(std::min(bytes_max, static_cast<std::size_t>(end - offset)), '\0');
  BERTH_DO(read_at(bytes, text, offset));
  return text;
}

Result<> RunLogs::remove(const core::RunId& run) const {
  for (const std::string& path : {index_file(run), bytes_file(run)}) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_failure("remove", path, errno);
  }
  return {};
}

}  // namespace berth::engine
