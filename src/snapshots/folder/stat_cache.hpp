#pragma once

#include "snapshots/folder/scan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace berth::snapshots {

// What a file was when it was read last, so that an unchanged one is not read again. An entry is
// believed only if its file had not been touched shortly before it was read: a later write within
// the resolution of the file system's clock would look the same.
class StatCache {
 public:
  struct Entry {
    std::string_view path = {};
    FileState state = {};
    GitMode mode = GitMode::file;
    ObjectId id = {};
    bool steady = false;  // the state may be believed
    bool lfs_pointer = false;
  };
  struct Head {
    ObjectId commit = {};  // the last snapshot: it keeps all objects of the cache alive
    ObjectId tree = {};
  };

  // Nothing if there is none or it is damaged: a cache may always be missing.
  static std::optional<StatCache> load(const std::string& path);

  const Head& head() const { return head_; }
  std::uint64_t size() const { return count_; }
  // The entry of this path, if there is one. Paths must be asked for in ascending order.
  std::optional<Entry> find(std::string_view path);
  // All trees of the last snapshot.
  std::unordered_set<ObjectId> trees() const;

 private:
  bool read(Entry& entry);

  std::string bytes_;
  Head head_;
  std::uint64_t count_ = 0;
  std::uint64_t left_ = 0;
  std::size_t at_ = 0;
  std::size_t trees_at_ = 0;
  std::optional<Entry> next_;
};

class StatCacheWriter {
 public:
  // In ascending order of paths.
  void add(const StatCache::Entry& entry);
  void add_tree(const ObjectId& tree) { trees_ += tree.raw(); }
  Result<> save(const std::string& path, const StatCache::Head& head) const;

 private:
  std::string entries_;
  std::string trees_;
  std::uint64_t count_ = 0;
};

}  // namespace berth::snapshots
