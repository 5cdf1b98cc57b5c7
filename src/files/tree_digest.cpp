#include "images/tree_digest.hpp"

#include "base/owned.hpp"
#include "images/disk.hpp"
#include "images/hash.hpp"
#include "images/tree_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace berth::images {
namespace {

constexpr std::size_t digest_read_bytes = 256 << 10;

class TreeHash {
 public:
  TreeHash(const Limits& limits, Meter& meter)
      : limits_(limits), meter_(meter), buffer_(digest_read_bytes) {
    hash_.add("berth-tree-1\n");
  }

  Result<> add_folder(int folder, const std::string& path, std::size_t depth) {
    if (depth > limits_.depth_max) return refuse_entry(path, "is too deep");
    struct stat seen{};
    if (::fstat(folder, &seen) != 0) return disk_failure("look at", path, errno);
    add_record('d', seen, path, "");
    BERTH_TRY(const std::vector<std::string> names, names_of(folder, path));
    const std::string prefix = path.empty() ? "" : path + "/";
    for (const std::string& name : names) BERTH_DO(add_entry(folder, name, prefix + name, depth));
    return {};
  }

  TreeDigest result() { return {hash_.digest(), entries_, bytes_}; }

 private:
  Result<> add_entry(int folder, const std::string& name, const std::string& path,
                     std::size_t depth) {
    struct stat seen{};
    if (::fstatat(folder, name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
      return disk_failure("look at", path, errno);
    }
    BERTH_DO(meter_.go_on());
    if (++entries_ > limits_.entries_max) return refuse_entry(path, "is one entry too many");
    meter_.add_entry();
    if (S_ISLNK(seen.st_mode)) {
      BERTH_TRY(const std::string target, read_link(folder, name, limits_.target_bytes_max));
      seen.st_mode = 0777;  // the mode of a link has no meaning
      add_record('l', seen, path, target);
      return {};
    }
    if (!S_ISDIR(seen.st_mode) && !S_ISREG(seen.st_mode)) {
      return refuse_entry(path, "is neither a file nor a folder nor a link");
    }
    const int kind = S_ISDIR(seen.st_mode) ? O_DIRECTORY : O_NONBLOCK;
    const Fd inside{::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind)};
    if (!inside) return disk_failure("open", path, errno);
    if (S_ISDIR(seen.st_mode)) return add_folder(inside.get(), path, depth + 1);
    BERTH_TRY(const std::string content, hash_file(inside.get(), path));
    add_record('f', seen, path, content);
    return {};
  }

  Result<std::string> hash_file(int file, const std::string& path) {
    Hash content;
    while (true) {
      const ssize_t got = ::read(file, buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return disk_failure("read", path, errno);
      if (got == 0) return content.digest();
      const auto size = static_cast<std::size_t>(got);
      content.add({buffer_.data(), size});
      bytes_ += size;
      meter_.add_bytes(size);
      BERTH_DO(meter_.go_on());
    }
  }

  // Every part includes its length, so that no two trees have the same records.
  void add_record(char type, const struct stat& seen, const std::string& path,
                  const std::string& content) {
    std::string record{type};
    const auto add = [&record](const std::string& part) {
      record += std::to_string(part.size()) + ":" + part;
    };
    add(std::to_string(seen.st_mode & 07777));
    add(std::to_string(own_ ? 0 : seen.st_uid));
    add(std::to_string(own_ ? 0 : seen.st_gid));
    add(path);
    add(content);
    hash_.add(record + "\n");
  }

  const Limits& limits_;
  Meter& meter_;
  Hash hash_;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<char> buffer_;
  bool own_ = ownership_of_this_process() == Ownership::own_user;
};

}  // namespace

Result<TreeDigest> digest_of_tree(int root, const Limits& limits, Meter& meter) {
  TreeHash tree{limits, meter};
  BERTH_DO(tree.add_folder(root, "", 0));
  return tree.result();
}

}  // namespace berth::images
