#include "files/tree_copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <vector>

namespace berth::files {
namespace {

constexpr std::uint32_t nobody = 65534;
constexpr std::size_t attribute_bytes_max = 64 << 10;  // the kernel's limit

// The part of a file between two holes, or the rest of it.
struct Extent {
  off_t begin = 0;
  off_t end = 0;
};

Extent next_extent(int file, off_t from, off_t size) {
  const off_t begin = ::lseek(file, from, SEEK_DATA);
  if (begin < 0 && errno == ENXIO) return {size, size};
  if (begin < 0) return {from, size};  // a file system without support for holes
  const off_t end = ::lseek(file, begin, SEEK_HOLE);
  return {std::min(begin, size), end < 0 ? size : std::min(end, size)};
}

class TreeCopy {
 public:
  TreeCopy(TreeWriter& into, const CopyOptions& options, Meter& meter)
      : into_(into), options_(options), meter_(meter), buffer_(256 << 10) {}

  Result<> copy_root(int from) {
    struct stat seen{};
    if (::fstat(from, &seen) != 0) return store_failure("look at", "./", errno);
    device_ = seen.st_dev;
    BERTH_TRY(const Entry entry, described(from, "", "./", seen));
    BERTH_DO(into_.put(entry));
    return copy_content(from, "");
  }

 private:
  // Copies a folder's content; its own entry exists already.
  Result<> copy_content(int folder, const std::string& path) {
    if (options_.rules == Rules::layer) BERTH_DO(copy_folder_attributes(folder, path));
    BERTH_TRY(const std::vector<std::string> names, names_of(folder, path));
    const std::string prefix = path.empty() ? "" : path + "/";
    for (const std::string& name : names) BERTH_DO(copy_entry(folder, name, prefix + name));
    return {};
  }

  Result<> copy_entry(int folder, const std::string& name, const std::string& path) {
    struct stat seen{};
    if (::fstatat(folder, name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Result<>{} : store_failure("look at", path, errno);
    }
    BERTH_TRY(const Entry entry, described(folder, name, path, seen));
    if (entry.type == EntryType::file) return copy_file(folder, name, entry, seen);
    BERTH_DO(into_.put(entry));
    if (entry.type != EntryType::directory || seen.st_dev != device_) return {};
    const Unlocked inside = open(folder, name, O_RDONLY | O_DIRECTORY);
    if (!inside) return store_failure("open", path, errno);
    return copy_content(inside.get(), path);
  }

  // A sandbox's files may be unlocked to read them; a user's folder is left as it is.
  Unlocked open(int folder, const std::string& name, int flags) const {
    return options_.rules == Rules::layer ? Unlocked::open(folder, name, flags)
                                          : Unlocked::open_as_it_is(folder, name, flags);
  }

  Result<Entry> described(int folder, const std::string& name, const std::string& path,
                          const struct stat& seen) const {
    Entry entry{.path = path,
                .type = type_of(seen),
                .mode = seen.st_mode & 07777,
                .uid = id_inside(seen.st_uid),
                .gid = id_inside(seen.st_gid),
                .modified = seen.st_mtim,
                .bytes = static_cast<std::uint64_t>(seen.st_size)};
    if (entry.type == EntryType::symbolic_link) {
      BERTH_TRY(entry.target, read_link(folder, name, path));
    }
    return entry;
  }

  std::uint32_t id_inside(std::uint32_t id) const {
    if (ownership_ == Ownership::own_user) return 0;
    if (options_.rules == Rules::image) return id;
    const std::uint32_t first = options_.ids.first;
    return id >= first && id - first <= id_max ? id - first : nobody;
  }

  Result<> copy_file(int folder, const std::string& name, Entry entry, const struct stat& seen) {
    const bool is_covered = options_.rules == Rules::layer && seen.st_dev != device_;
    if (is_covered) return put_place(std::move(entry));
    if (seen.st_nlink > 1) {
      const auto [first, fresh] = links_.try_emplace({seen.st_dev, seen.st_ino}, entry.path);
      if (!fresh) {
        entry.type = EntryType::hard_link;
        entry.target = first->second;
        return into_.put(entry);
      }
    }
    // The file may have become a pipe since it was looked at, and opening one must not block.
    const Unlocked from = open(folder, name, O_RDONLY | O_NONBLOCK);
    struct stat opened{};
    if (!from || ::fstat(from.get(), &opened) != 0) return store_failure("open", entry.path, errno);
    if (!S_ISREG(opened.st_mode)) return into_.refused(entry.path, "changes while it is copied");
    entry.bytes = static_cast<std::uint64_t>(opened.st_size);
    BERTH_TRY(const Fd to, into_.begin_file(entry));
    BERTH_DO(copy_bytes(from.get(), to.get(), entry));
    if (options_.rules == Rules::layer) {
      BERTH_DO(copy_attributes(from.get(), to.get(), entry.path));
    }
    return into_.end_file(to, entry);
  }

  // What is mounted there does not belong to the sandbox: only the mount point is kept.
  Result<> put_place(Entry entry) {
    entry.bytes = 0;
    BERTH_TRY(const Fd place, into_.begin_file(entry));
    return into_.end_file(place, entry);
  }

  Result<> copy_bytes(int from, int to, const Entry& entry) {
    if (::ioctl(to, FICLONE, from) == 0) {
      meter_.add_bytes(entry.bytes);
      return {};
    }
    const auto size = static_cast<off_t>(entry.bytes);
    for (off_t at = 0; at < size;) {
      const Extent extent = next_extent(from, at, size);
      BERTH_DO(copy_extent(from, to, extent, entry.path));
      at = extent.end;
    }
    return {};
  }

  Result<> copy_extent(int from, int to, Extent extent, const std::string& path) {
    while (extent.begin < extent.end) {
      const auto wanted =
          std::min(buffer_.size(), static_cast<std::size_t>(extent.end - extent.begin));
      const ssize_t got = ::pread(from, buffer_.data(), wanted, extent.begin);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return store_failure("read", path, errno);
      if (got == 0) return {};  // it became shorter
      const auto bytes = static_cast<std::size_t>(got);
      BERTH_DO(
          write_at(to, {buffer_.data(), bytes}, static_cast<std::uint64_t>(extent.begin), path));
      meter_.add_bytes(bytes);
      BERTH_DO(meter_.go_on());
      extent.begin += got;
    }
    return {};
  }

  Result<> copy_folder_attributes(int folder, const std::string& path) {
    BERTH_TRY(const int to, into_.folder(path));
    return copy_attributes(folder, to, path);
  }

  Result<> copy_attributes(int from, int to, const std::string& path) {
    const ssize_t size = ::flistxattr(from, nullptr, 0);
    if (size < 0 && errno == ENOTSUP) return {};
    if (size < 0) return store_failure("list attributes of", path, errno);
    std::string list(static_cast<std::size_t>(size), '\0');
    const ssize_t got = ::flistxattr(from, list.data(), list.size());
    if (got < 0) return store_failure("list attributes of", path, errno);
    list.resize(static_cast<std::size_t>(got));
    for (std::size_t at = 0; at < list.size();) {
      const std::string name = list.c_str() + at;
      at += name.size() + 1;
      BERTH_DO(copy_attribute(from, to, name, path));
    }
    return {};
  }

  Result<> copy_attribute(int from, int to, const std::string& name, const std::string& path) {
    if (is_mark(options_.marks, name)) {
      const std::string_view says = std::string_view{name}.substr(prefix_of(options_.marks).size());
      // With these attributes the content is in another layer, which the copy does not have.
      if (says == "metacopy" || says == "redirect") {
        return into_.refused(path, "has its content in another layer",
                             "mount the sandbox without metacopy and redirect_dir");
      }
      if (says != "opaque") return {};
    } else if (!name.starts_with("user.")) {
      return {};
    } else if (options_.marks == OverlayMarks::none && is_mark(OverlayMarks::user, name)) {
      return {};  // the overlay above the copy would take it for its own
    }
    std::string value(attribute_bytes_max, '\0');
    const ssize_t size = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (size < 0) return store_failure("read an attribute of", path, errno);
    if (::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0) {
      return store_failure("set an attribute of", path, errno);
    }
    return {};
  }

  TreeWriter& into_;
  CopyOptions options_;
  Meter& meter_;
  Ownership ownership_ = ownership_of_this_process();
  dev_t device_ = 0;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;  // files with several names, by the first
  std::vector<char> buffer_;
};

}  // namespace

Result<> copy_tree(int from, TreeWriter& into, const CopyOptions& options, Meter& meter) {
  return TreeCopy{into, options, meter}.copy_root(from);
}

}  // namespace berth::files
