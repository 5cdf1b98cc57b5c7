#include "snapshots/git/pack_writer.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/random.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace berth::snapshots {
namespace {

constexpr std::size_t pack_buffer_bytes = 1 << 20;
constexpr std::size_t pack_header_bytes = 12;
// The fastest: garbage collection packs what remains again.
constexpr int compression_level = 1;

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

void put_u64(std::string& out, std::uint64_t value) {
  put_u32(out, static_cast<std::uint32_t>(value >> 32));
  put_u32(out, static_cast<std::uint32_t>(value));
}

std::string pack_header(std::size_t objects) {
  std::string header = "PACK";
  put_u32(header, 2);
  put_u32(header, static_cast<std::uint32_t>(objects));
  return header;
}

// Type and size, seven bits at a time after the first four.
std::string entry_header(ObjectType type, std::uint64_t bytes) {
  std::string header;
  auto next = static_cast<unsigned>(static_cast<unsigned>(type) << 4 | (bytes & 15));
  bytes >>= 4;
  while (bytes != 0) {
    header += static_cast<char>(next | 0x80);
    next = static_cast<unsigned>(bytes & 0x7f);
    bytes >>= 7;
  }
  header += static_cast<char>(next);
  return header;
}

Result<> sync_folder(const std::string& path) {
  const Fd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!folder || ::fsync(folder.get()) != 0) return io_failure("fsync", path, errno);
  return {};
}

}  // namespace

void PackWriter::EndDeflate::operator()(z_stream* stream) const {
  ::deflateEnd(stream);
  delete stream;
}

PackWriter::PackWriter(Fd file, std::string folder, std::string draft)
    : file_(std::move(file)),
      folder_(std::move(folder)),
      draft_(std::move(draft)),
      deflate_(new z_stream{}),
      buffer_(pack_header(0)) {
  BERTH_ASSERT(deflateInit(deflate_.get(), compression_level) == Z_OK);
}

PackWriter::PackWriter(PackWriter&& other) noexcept = default;

PackWriter::~PackWriter() {
  // A moved-from writer has no file.
  if (file_ && !draft_.empty()) ::unlink(draft_.c_str());
}

Result<PackWriter> PackWriter::in(const Repository& repository) {
  const std::string folder = repository.folder() + "/objects/pack";
  BERTH_DO(make_directories(folder, 0700));
  SystemRandom random;
  // Git knows this prefix, and removes such files when it collects garbage.
  std::string draft = folder + "/tmp_pack_" + random_base64url(random, 9);
  Fd file{::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400)};
  if (!file) return io_failure("create", draft, errno);
  return PackWriter{std::move(file), folder, std::move(draft)};
}

Result<> PackWriter::flush() {
  BERTH_DO(write_at(file_.get(), buffer_, written_, draft_));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Result<> PackWriter::append(std::string_view bytes) {
  current_.crc = static_cast<std::uint32_t>(::crc32(
      current_.crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  buffer_ += bytes;
  if (buffer_.size() >= pack_buffer_bytes) return flush();
  return {};
}

Result<> PackWriter::begin(ObjectType type, std::uint64_t bytes) {
  BERTH_ASSERT(!hash_);
  current_ = {.offset = written_ + buffer_.size(), .crc = 0};
  hash_ = std::make_unique<Sha1>();
  hash_->add(object_header(type, bytes));
  missing_ = bytes;
  BERTH_ASSERT(::deflateReset(deflate_.get()) == Z_OK);
  return append(entry_header(type, bytes));
}

Result<> PackWriter::compress(std::string_view piece, int flush) {
  std::array<char, 64 << 10> out;  // NOLINT(cppcoreguidelines-pro-type-member-init): zlib fills it
  while (true) {
    const auto given = static_cast<uInt>(std::min<std::size_t>(piece.size(), 1U << 30));
    deflate_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    deflate_->avail_in = given;
    deflate_->next_out = reinterpret_cast<Bytef*>(out.data());
    deflate_->avail_out = out.size();
    const int state = ::deflate(deflate_.get(), given == piece.size() ? flush : Z_NO_FLUSH);
    BERTH_ASSERT(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR);
    BERTH_DO(append({out.data(), out.size() - deflate_->avail_out}));
    piece.remove_prefix(given - deflate_->avail_in);
    if (flush == Z_FINISH ? state == Z_STREAM_END : piece.empty() && deflate_->avail_out != 0) {
      return {};
    }
  }
}

Result<> PackWriter::begin_blob(std::uint64_t bytes) {
  return begin(ObjectType::blob, bytes);
}

Result<> PackWriter::write(std::string_view piece) {
  BERTH_ASSERT(hash_ && piece.size() <= missing_);
  missing_ -= piece.size();
  hash_->add(piece);
  return compress(piece, Z_NO_FLUSH);
}

Result<ObjectId> PackWriter::finish_blob() {
  BERTH_ASSERT(hash_ && missing_ == 0);
  BERTH_DO(compress({}, Z_FINISH));
  const ObjectId id = hash_->finish();
  if (!entries_.try_emplace(id, current_).second) {
    abandon_blob();
  }
  hash_.reset();
  return id;
}

void PackWriter::abandon_blob() {
  hash_.reset();
  if (current_.offset >= written_) {
    buffer_.resize(current_.offset - written_);
  } else {
    written_ = current_.offset;
    buffer_.clear();
  }
}

Result<ObjectId> PackWriter::add(ObjectType type, std::string_view content) {
  const ObjectId id = id_of(type, content);
  if (has(id)) return id;
  BERTH_DO(begin(type, content.size()));
  BERTH_DO(compress(content, Z_FINISH));
  entries_.emplace(id, current_);
  hash_.reset();
  return id;
}

// The number of objects is known only now, and the checksum begins with it.
Result<ObjectId> PackWriter::seal() {
  BERTH_DO(flush());
  if (::ftruncate(file_.get(), static_cast<off_t>(written_)) != 0) {
    return io_failure("truncate", draft_, errno);
  }
  BERTH_DO(write_at(file_.get(), pack_header(entries_.size()), 0, draft_));
  Sha1 hash;
  std::string piece(pack_buffer_bytes, '\0');
  for (std::uint64_t at = 0; at < written_;) {
    const ssize_t size = ::pread(file_.get(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return io_failure("read", draft_, size < 0 ? errno : EIO);
    hash.add({piece.data(), static_cast<std::size_t>(size)});
    at += static_cast<std::uint64_t>(size);
  }
  const ObjectId id = hash.finish();
  BERTH_DO(write_at(file_.get(), id.raw(), written_, draft_));
  if (::fsync(file_.get()) != 0) return io_failure("fsync", draft_, errno);
  return id;
}

Result<> PackWriter::write_index(const ObjectId& pack) const {
  std::vector<std::pair<ObjectId, Entry>> sorted(entries_.begin(), entries_.end());
  std::ranges::sort(sorted, {}, [](const auto& entry) { return entry.first; });
  std::string index = "\377tOc";
  put_u32(index, 2);
  std::array<std::uint32_t, 256> fan_out{};
  for (const auto& [id, entry] : sorted) ++fan_out[id.bytes[0]];
  std::uint32_t sum = 0;
  for (const std::uint32_t count : fan_out) put_u32(index, sum += count);
  for (const auto& [id, entry] : sorted) index += id.raw();
  for (const auto& [id, entry] : sorted) put_u32(index, entry.crc);
  constexpr std::uint32_t in_large_table = 1U << 31;
  std::string large;
  for (const auto& [id, entry] : sorted) {
    if (entry.offset < in_large_table) {
      put_u32(index, static_cast<std::uint32_t>(entry.offset));
    } else {
      put_u32(index, in_large_table | static_cast<std::uint32_t>(large.size() / 8));
      put_u64(large, entry.offset);
    }
  }
  index += large;
  index += pack.raw();
  Sha1 hash;
  hash.add(index);
  index += hash.finish().raw();
  // The index is what makes git see the pack, so the pack has its name before.
  return replace_file(folder_ + "/pack-" + pack.hex() + ".idx", index, 0400);
}

Result<> PackWriter::finish() {
  BERTH_ASSERT(!hash_);
  if (entries_.empty()) return {};
  BERTH_TRY(const ObjectId id, seal());
  const std::string name = folder_ + "/pack-" + id.hex() + ".pack";
  if (::rename(draft_.c_str(), name.c_str()) != 0) return io_failure("rename", draft_, errno);
  draft_.clear();
  BERTH_DO(sync_folder(folder_));
  return write_index(id);
}

}  // namespace berth::snapshots
