#include "snapshots/folder/stat_cache.hpp"

#include "base/files.hpp"

#include <zlib.h>

#include <cstring>

namespace berth::snapshots {
namespace {

constexpr std::string_view cache_magic = "berth stat cache 1\n";
constexpr std::size_t cache_bytes_max = 1 << 30;

// Written and read by the same machine: no byte order to agree on.
struct FixedPart {
  FileState state;
  GitMode mode;
  ObjectId id;
  std::uint16_t path_bytes;
  std::uint8_t steady;
  std::uint8_t lfs_pointer;
};

struct Preamble {
  std::uint64_t count;
  std::uint64_t entries_bytes;
  ObjectId commit;
  ObjectId tree;
  std::uint32_t checksum;
};

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::optional<StatCache> StatCache::load(const std::string& path) {
  auto bytes = read_file(path, cache_bytes_max);
  if (!bytes || !bytes->starts_with(cache_magic)) return std::nullopt;
  const std::size_t start = cache_magic.size() + sizeof(Preamble);
  if (bytes->size() < start) return std::nullopt;
  Preamble preamble{};
  std::memcpy(&preamble, bytes->data() + cache_magic.size(), sizeof preamble);
  const std::string_view body = std::string_view{*bytes}.substr(start);
  if (preamble.entries_bytes > body.size() || checksum_of(body) != preamble.checksum) {
    return std::nullopt;
  }
  StatCache cache;
  cache.head_ = {preamble.commit, preamble.tree};
  cache.count_ = preamble.count;
  cache.left_ = preamble.count;
  cache.at_ = start;
  cache.trees_at_ = start + preamble.entries_bytes;
  cache.bytes_ = *std::move(bytes);
  return cache;
}

bool StatCache::read(Entry& entry) {
  FixedPart part{};
  if (left_ == 0 || at_ + sizeof part > trees_at_) return false;
  std::memcpy(&part, bytes_.data() + at_, sizeof part);
  at_ += sizeof part;
  entry = {.path = std::string_view{bytes_}.substr(at_, part.path_bytes),
           .state = part.state,
           .mode = part.mode,
           .id = part.id,
           .steady = part.steady != 0,
           .lfs_pointer = part.lfs_pointer != 0};
  at_ += part.path_bytes;
  --left_;
  return true;
}

std::optional<StatCache::Entry> StatCache::find(std::string_view path) {
  while (true) {
    if (!next_) {
      Entry entry;
      if (!read(entry)) return std::nullopt;
      next_ = entry;
    }
    if (next_->path > path) return std::nullopt;
    const Entry found = *next_;
    next_.reset();
    if (found.path == path) return found;
  }
}

std::unordered_set<ObjectId> StatCache::trees() const {
  std::unordered_set<ObjectId> found;
  ObjectId id;
  for (std::size_t at = trees_at_; at + id.bytes.size() <= bytes_.size(); at += id.bytes.size()) {
    std::memcpy(id.bytes.data(), bytes_.data() + at, id.bytes.size());
    found.insert(id);
  }
  return found;
}

void StatCacheWriter::add(const StatCache::Entry& entry) {
  FixedPart part;
  std::memset(static_cast<void*>(&part), 0, sizeof part);  // the gaps too: they are written
  part.state = entry.state;
  part.mode = entry.mode;
  part.id = entry.id;
  part.path_bytes = static_cast<std::uint16_t>(entry.path.size());
  part.steady = entry.steady ? 1 : 0;
  part.lfs_pointer = entry.lfs_pointer ? 1 : 0;
  put(entries_, part);
  entries_ += entry.path;
  ++count_;
}

Result<> StatCacheWriter::save(const std::string& path, const StatCache::Head& head) const {
  const std::string body = entries_ + trees_;
  Preamble preamble;
  std::memset(static_cast<void*>(&preamble), 0, sizeof preamble);
  preamble.count = count_;
  preamble.entries_bytes = entries_.size();
  preamble.commit = head.commit;
  preamble.tree = head.tree;
  preamble.checksum = checksum_of(body);
  std::string text{cache_magic};
  put(text, preamble);
  text += body;
  return replace_file(path, text, 0600);
}

}  // namespace berth::snapshots
