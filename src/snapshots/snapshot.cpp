#include "snapshots/snapshot.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "snapshots/beneath.hpp"
#include "snapshots/folder/stat_cache.hpp"
#include "snapshots/git/pack_writer.hpp"
#include "snapshots/git/tree_builder.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace berth::snapshots {
namespace {

constexpr int reads_of_a_file_max = 4;
constexpr int attempts_max = 3;
// Coarser than the clock of any file system that we know of but FAT.
constexpr std::int64_t clock_resolution_ns = 50'000'000;
constexpr std::string_view lfs_first_line = "version https://git-lfs.github.com/spec/v1\n";
constexpr std::uint64_t lfs_bytes_max = 1024;

std::int64_t wall_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

bool is_cache_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// A file that is not the one that was scanned, or does not hold still.
std::unexpected<Error> unsteady(const std::string& shown, std::string_view path) {
  return fail(
      Errc::workspace_unsteady, shown + "/" + escaped(path) + ": keeps changing while it is read",
      "stop the program that writes it, or leave it out: --exclude '" + escaped(path) + "'");
}

class SnapshotTaker {
 public:
  SnapshotTaker(const Repository& repository, int root, const std::string& shown,
                const SnapshotOptions& options)
      : repository_(repository), root_(root), shown_(shown), options_(options) {}

  Result<Snapshot> take() {
    BERTH_DO(load_cache());
    BERTH_TRY(Scan scan, scan_folder(repository_, root_, shown_, options_.scan));
    snapshot_.notices = std::move(scan.notices);
    snapshot_.left_out = scan.left_out;
    for (ScannedEntry& entry : scan.entries) BERTH_DO(read(entry));
    // What disappeared between the scan and the reading was not there.
    std::erase_if(scan.entries, [](const ScannedEntry& entry) { return entry.path.empty(); });
    snapshot_.files = scan.entries.size();
    for (const ScannedEntry& entry : scan.entries) {
      if (entry.mode != GitMode::commit) snapshot_.bytes += entry.state.bytes;
    }
    BERTH_DO(record(scan.entries));
    snapshot_.entries = std::move(scan.entries);
    return std::move(snapshot_);
  }

 private:
  std::string cache_path() const { return repository_.folder() + "/berth/stat-" + options_.cache; }
  std::string cache_ref() const { return "refs/berth/caches/" + options_.cache; }

  Result<> load_cache() {
    if (options_.cache.empty()) return {};
    if (!is_cache_name(options_.cache)) {
      return fail(Errc::bug, "cache " + in_quotes(options_.cache) + ": is not a name");
    }
    std::optional<StatCache> found = StatCache::load(cache_path());
    if (!found) return {};
    // Without its ref, the objects of the cache may be collected.
    BERTH_TRY(const auto kept, repository_.ref(cache_ref()));
    if (kept && *kept == found->head().commit) cache_ = std::move(found);
    return {};
  }

  Result<> read(ScannedEntry& entry) {
    if (entry.mode == GitMode::commit) return note_nested(entry);
    bool lfs_pointer = false;
    bool steady = false;
    const auto known = cache_ ? cache_->find(entry.path) : std::nullopt;
    if (known && known->steady && known->state == entry.state && known->mode == entry.mode) {
      ++known_;
      entry.id = known->id;
      lfs_pointer = known->lfs_pointer;
      steady = true;
    } else {
      const std::int64_t begun = wall_clock_ns();
      BERTH_TRY(const bool there, entry.mode == GitMode::link ? read_link_of(entry)
                                                              : read_file_of(entry, lfs_pointer));
      if (!there) {
        entry.path.clear();
        return {};
      }
      ++snapshot_.files_read;
      snapshot_.bytes_read += entry.state.bytes;
      steady =
          std::max(entry.state.changed_ns, entry.state.modified_ns) < begun - clock_resolution_ns;
    }
    if (lfs_pointer) snapshot_.notices.push_back({entry.path, Reason::lfs_pointer});
    if (!options_.cache.empty()) {
      cache_writer_.add({.path = entry.path,
                         .state = entry.state,
                         .mode = entry.mode,
                         .id = entry.id,
                         .steady = steady,
                         .lfs_pointer = lfs_pointer});
    }
    return {};
  }

  Result<> note_nested(const ScannedEntry& entry) {
    const auto known = cache_ ? cache_->find(entry.path) : std::nullopt;
    if (known && known->mode == entry.mode && known->id == entry.id) ++known_;
    if (!options_.cache.empty()) {
      cache_writer_.add({.path = entry.path, .mode = entry.mode, .id = entry.id});
    }
    return {};
  }

  Result<PackWriter*> pack() {
    if (!pack_) {
      BERTH_TRY(PackWriter made, PackWriter::in(repository_));
      pack_ = std::make_unique<PackWriter>(std::move(made));
    }
    return pack_.get();
  }

  Result<bool> read_link_of(ScannedEntry& entry) {
    for (int attempt = 0; attempt < reads_of_a_file_max; ++attempt) {
      const Fd link{open_beneath(root_, entry.path, O_PATH | O_NOFOLLOW)};
      if (!link && errno == ENOENT) return false;
      struct stat status{};
      if (!link || ::fstat(link.get(), &status) != 0 || !S_ISLNK(status.st_mode)) break;
      std::array<char, 4096> target{};
      const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
      if (size < 0) break;
      entry.state = FileState::of(status);
      BERTH_TRY(PackWriter* const out, pack());
      BERTH_TRY(entry.id,
                out->add(ObjectType::blob, {target.data(), static_cast<std::size_t>(size)}));
      return true;
    }
    return unsteady(shown_, entry.path);
  }

  Result<bool> read_file_of(ScannedEntry& entry, bool& lfs_pointer) {
    for (int attempt = 0; attempt < reads_of_a_file_max; ++attempt) {
      const Fd file{open_beneath(root_, entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)};
      if (!file && errno == ENOENT) return false;
      if (!file && (errno == EACCES || errno == EPERM)) {
        snapshot_.notices.push_back({entry.path, Reason::unreadable});
        ++snapshot_.left_out;
        return false;
      }
      struct stat status{};
      if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) break;
      entry.state = FileState::of(status);
      entry.mode = (status.st_mode & S_IXUSR) != 0 ? GitMode::program : GitMode::file;
      if (entry.state.bytes > options_.scan.limits.file_bytes_max) break;
      BERTH_TRY(const bool steady, copy(file.get(), entry, lfs_pointer));
      if (steady) return true;
    }
    return unsteady(shown_, entry.path);
  }

  // False if the file was written meanwhile.
  Result<bool> copy(int file, ScannedEntry& entry, bool& lfs_pointer) {
    BERTH_TRY(PackWriter* const out, pack());
    BERTH_DO(out->begin_blob(entry.state.bytes));
    std::uint64_t left = entry.state.bytes;
    bool first = true;
    while (left > 0) {
      const std::size_t wanted = std::min<std::uint64_t>(left, buffer_.size());
      const ssize_t size = ::read(file, buffer_.data(), wanted);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return disk_failure("read", shown_ + "/" + entry.path, errno);
      if (size == 0) break;
      const std::string_view piece{buffer_.data(), static_cast<std::size_t>(size)};
      lfs_pointer = first ? entry.state.bytes <= lfs_bytes_max && piece.starts_with(lfs_first_line)
                          : lfs_pointer;
      first = false;
      BERTH_DO(out->write(piece));
      left -= piece.size();
    }
    struct stat after{};
    if (left > 0 || ::fstat(file, &after) != 0 || !(FileState::of(after) == entry.state)) {
      out->abandon_blob();
      return false;
    }
    BERTH_TRY(entry.id, out->finish_blob());
    return true;
  }

  Result<> record(const std::vector<ScannedEntry>& entries) {
    // Every entry is known and none is missing: the tree is that of the last time.
    if (cache_ && known_ == entries.size() && known_ == cache_->size()) {
      snapshot_.tree = cache_->head().tree;
      if (!options_.parent) {
        snapshot_.commit = cache_->head().commit;
        return {};
      }
      BERTH_TRY(PackWriter* const out, pack());
      return commit(*out);
    }
    BERTH_TRY(PackWriter* const out, pack());
    TreeBuilder builder{*out, cache_ ? cache_->trees() : std::unordered_set<ObjectId>{}};
    for (const ScannedEntry& entry : entries) {
      BERTH_DO(builder.add(entry.path, entry.mode, entry.id));
    }
    BERTH_TRY(snapshot_.tree, builder.finish());
    for (const ObjectId& tree : builder.trees()) cache_writer_.add_tree(tree);
    if (cache_ && snapshot_.tree == cache_->head().tree && !options_.parent) {
      // Files were read again and are what they were: there is nothing to write.
      snapshot_.commit = cache_->head().commit;
    } else {
      BERTH_DO(commit(*out));
    }
    if (options_.cache.empty()) return {};
    BERTH_DO(repository_.set_refs({{cache_ref(), snapshot_.commit}}));
    return cache_writer_.save(cache_path(), {snapshot_.commit, snapshot_.tree});
  }

  Result<> commit(PackWriter& out) {
    CommitText text{
        .tree = snapshot_.tree, .seconds = options_.now.ms / 1000, .message = options_.message};
    if (options_.parent) text.parents.push_back(*options_.parent);
    BERTH_TRY(snapshot_.commit, out.add(ObjectType::commit, text_of(text)));
    return out.finish();
  }

  const Repository& repository_;
  int root_;
  const std::string& shown_;
  const SnapshotOptions& options_;
  std::optional<StatCache> cache_;
  StatCacheWriter cache_writer_;
  std::uint64_t known_ = 0;
  std::unique_ptr<PackWriter> pack_;
  std::vector<char> buffer_ = std::vector<char>(256 << 10);
  Snapshot snapshot_;
};

}  // namespace

Result<Snapshot> take_snapshot(const Repository& repository, const std::string& folder,
                               const SnapshotOptions& options) {
  const Fd root{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!root) {
    return fail(Errc::workspace_invalid, io_failure("open", folder, errno).error().message,
                "name a folder that the server may read");
  }
  for (int attempt = 1;; ++attempt) {
    Result<Snapshot> taken = SnapshotTaker{repository, root.get(), folder, options}.take();
    // A file that became a folder, for example: the next scan sees it as it is.
    if (taken || taken.error().code != Errc::workspace_unsteady || attempt == attempts_max) {
      return taken;
    }
  }
}

}  // namespace berth::snapshots
