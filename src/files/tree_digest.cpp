#include "files/tree_digest.hpp"

#include "base/digest.hpp"
#include "files/tree_writer.hpp"
#include "files/walk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace berth::files {
namespace {

constexpr std::size_t digest_read_bytes = 256 << 10;

// A tree that cannot be read or that breaks a limit is not one that was stored.
Error as_invalid(Error error) {
  if (error.code == Errc::path_refused) error.code = Errc::image_invalid;
  return error;
}

class TreeHash {
 public:
  explicit TreeHash(Meter& meter) : meter_(meter), buffer_(digest_read_bytes) {
    hash_.add("berth-tree-1\n");
  }

  Result<> add_root(int root) {
    struct stat seen{};
    if (::fstat(root, &seen) != 0) return store_failure("look at", "./", errno);
    add_record('d', seen, "", "");
    return {};
  }

  Result<> add(const Walk::Item& item) {
    BERTH_DO(meter_.go_on());
    ++entries_;
    meter_.add_entry();
    struct stat seen = item.found.status;
    switch (item.type()) {
      case EntryType::directory: add_record('d', seen, item.path, ""); return {};
      case EntryType::symbolic_link:
        seen.st_mode = 0777;  // the mode of a link has no meaning
        add_record('l', seen, item.path, item.target);
        return {};
      case EntryType::file: break;
      default:
        return refuse(item.path, "is neither a file nor a folder nor a link", {},
                      Errc::image_invalid);
    }
    BERTH_TRY(const std::string content, hash_file(item));
    add_record('f', seen, item.path, content);
    return {};
  }

  TreeDigest result() { return {hash_.digest(), entries_, bytes_}; }

 private:
  Result<std::string> hash_file(const Walk::Item& item) {
    const Fd file{::open(path_of(item.found.at.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    if (!file) return store_failure("open", item.path, errno);
    Sha256 content;
    while (true) {
      const ssize_t got = ::read(file.get(), buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return store_failure("read", item.path, errno);
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

  Meter& meter_;
  Sha256 hash_;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<char> buffer_;
  bool own_ = ownership_of_this_process() == Ownership::own_user;
};

}  // namespace

Result<TreeDigest> digest_of_tree(int root, const Limits& limits, Meter& meter) {
  TreeHash tree{meter};
  BERTH_DO(tree.add_root(root));
  BERTH_TRY(Walk walk, Walk::from(root, ".", Mounts::entered, limits));
  while (true) {
    Result<std::optional<Walk::Item>> item = walk.next();
    if (!item) return std::unexpected(as_invalid(std::move(item).error()));
    if (!*item) return tree.result();
    if ((*item)->refusal) return std::unexpected(as_invalid(*std::move((*item)->refusal)));
    BERTH_DO(tree.add(**item));
  }
}

}  // namespace berth::files
