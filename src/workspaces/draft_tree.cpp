#include "workspaces/draft_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ranges>

namespace berth::workspaces {
namespace {

constexpr mode_t set_id_bits = 07000;
constexpr std::size_t look_overhead_bytes = 128;

std::unexpected<Error> refuse_way(const Path& path, int error_number) {
  if (error_number == ENOTDIR) {
    return refuse(path.text(), "leads through a link or a file of the archive");
  }
  return disk_failure("open", path.text(), error_number);
}

}  // namespace

Result<> DraftTree::put(const TarEntry& entry, TarReader& reader) {
  BERTH_DO(charge(entry));
  BERTH_TRY(const Path path, Path::parse(entry.path, limits_));
  if (path.is_root()) {
    if (entry.type == TarEntry::Type::directory && !entry.path.empty()) return {};
    return refuse(entry.path, "names nothing");
  }
  switch (entry.type) {
    case TarEntry::Type::file: return put_file(path, entry, reader);
    case TarEntry::Type::directory: return put_directory(path, entry);
    case TarEntry::Type::symbolic_link: return put_symbolic_link(path, entry);
    case TarEntry::Type::hard_link: return put_hard_link(path, entry);
    case TarEntry::Type::other: break;
  }
  return refuse(entry.path, "is a device, a pipe or a socket");
}

// Declared sizes count, so that holes cost as much as bytes.
Result<> DraftTree::charge(const TarEntry& entry) {
  meter_.add_entry();
  if (++unpacked_.entries > limits_.entries_max) {
    return refuse(entry.path, "is one of more than " + std::to_string(limits_.entries_max));
  }
  if (entry.bytes > limits_.file_bytes_max) {
    return refuse(entry.path, "has more than " + std::to_string(limits_.file_bytes_max) + " bytes");
  }
  unpacked_.bytes += entry.bytes;
  if (unpacked_.bytes > limits_.bytes_max) {
    return refuse(entry.path,
                  "makes the archive larger than " + std::to_string(limits_.bytes_max) + " bytes");
  }
  return {};
}

mode_t DraftTree::kept_mode(const TarEntry& entry) {
  if ((entry.mode & set_id_bits) != 0) ++unpacked_.set_id_bits_dropped;
  return entry.mode & 0777;
}

Result<> DraftTree::remember(const std::string& path, const FolderLook& look) {
  const auto [at, fresh] = looks_.insert_or_assign(path, look);
  if (fresh) look_bytes_ += path.size() + look_overhead_bytes;
  if (look_bytes_ > limits_.folder_names_bytes_max) {
    return refuse(path, "is one folder too many");
  }
  return {};
}

Result<Fd> DraftTree::folder_of(const Path& path, std::size_t count) {
  std::string way = ".";
  for (std::size_t i = 0; i < count; ++i) way += "/" + path.names()[i];
  Fd folder{open_beneath(folder_, way, O_PATH | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
  if (folder) return folder;
  if (errno != ENOENT) return refuse_way(path, errno);
  std::string made;
  folder = Fd{open_beneath(folder_, ".", O_PATH | O_DIRECTORY, Mounts::refused)};
  for (std::size_t i = 0; i < count && folder; ++i) {
    const std::string& name = path.names()[i];
    made += (made.empty() ? "" : "/") + name;
    if (::mkdirat(folder.get(), name.c_str(), 0700) == 0) {
      BERTH_DO(remember(made, {}));
    } else if (errno != EEXIST) {
      return disk_failure("make", path.text(), errno);
    }
    folder =
        Fd{open_beneath(folder.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
  }
  if (!folder) return refuse_way(path, errno);
  return folder;
}

// A later entry with the same name replaces the earlier one, as with every tar; folders remain.
Result<> DraftTree::clear(int folder, const Path& path) const {
  if (::unlinkat(folder, path.name().c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno == EISDIR) return refuse(path.text(), "stands where the archive has a directory");
  return disk_failure("replace", path.text(), errno);
}

Result<> DraftTree::put_file(const Path& path, const TarEntry& entry, TarReader& reader) {
  BERTH_TRY(const Fd folder, folder_of(path, path.names().size() - 1));
  BERTH_DO(clear(folder.get(), path));
  const Fd file{open_beneath(folder.get(), path.name(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                             Mounts::refused, 0600)};
  if (!file) return disk_failure("create", path.text(), errno);
  BERTH_DO(fill(file.get(), path, entry, reader));
  BERTH_DO(set_look(file.get(), kept_mode(entry), options_.owner, path.text()));
  const timespec times[] = {entry.modified, entry.modified};
  if (::futimens(file.get(), times) != 0) return disk_failure("date", path.text(), errno);
  return {};
}

Result<> DraftTree::fill(int fd, const Path& path, const TarEntry& entry, TarReader& reader) {
  std::uint64_t end = 0;
  BERTH_DO(reader.content([&](std::uint64_t offset, std::string_view bytes) -> Result<> {
    if (offset > entry.bytes || bytes.size() > entry.bytes - offset) {
      return refuse(entry.path, "holds more than it says");
    }
    meter_.add_bytes(bytes.size());
    end = std::max(end, offset + bytes.size());
    return write_at(fd, bytes, offset, path.text());
  }));
  // The file ends in a hole.
  if (end < entry.bytes && ::ftruncate(fd, static_cast<off_t>(entry.bytes)) != 0) {
    return disk_failure("write", path.text(), errno);
  }
  return {};
}

Result<> DraftTree::put_directory(const Path& path, const TarEntry& entry) {
  BERTH_DO(folder_of(path, path.names().size()));
  return remember(path.text(), {.mode = kept_mode(entry), .modified = entry.modified});
}

// "../" is allowed only at the beginning, where it counts folders that are not links. After a name
// it could leave through a link that leads up, whatever the text looks like.
Result<> DraftTree::check_target(const Path& path, const std::string& target) const {
  const auto refused = [&](std::string_view rule) {
    return refuse(path.text(), rule, options_.link_remedy);
  };
  if (options_.links == LinkRule::refused) return refused("is a symbolic link");
  if (target.empty() || target.size() > limits_.path_bytes_max || target.contains('\0')) {
    return refused("is a link to nothing that can be named");
  }
  if (options_.links == LinkRule::any) return {};
  if (target.starts_with('/')) return refused("is a link to an absolute path");
  std::size_t up = 0;
  bool down = false;
  for (const auto part : std::views::split(target, '/')) {
    const std::string_view name{part.begin(), part.end()};
    if (name.empty() || name == ".") continue;
    if (name == ".." && down) return refused("is a link with '..' behind a name");
    down = name != "..";
    if (!down) ++up;
  }
  if (up > depth_ + path.names().size() - 1) {
    return refused("is a link that leads out of the root");
  }
  return {};
}

Result<> DraftTree::put_symbolic_link(const Path& path, const TarEntry& entry) {
  BERTH_DO(check_target(path, entry.target));
  BERTH_TRY(const Fd folder, folder_of(path, path.names().size() - 1));
  BERTH_DO(clear(folder.get(), path));
  const char* name = path.name().c_str();
  if (::symlinkat(entry.target.c_str(), folder.get(), name) != 0) {
    return disk_failure("link", path.text(), errno);
  }
  const std::optional<Owner>& owner = options_.owner;
  if (owner && ::fchownat(folder.get(), name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return disk_failure("change the owner of", path.text(), errno);
  }
  const timespec times[] = {entry.modified, entry.modified};
  if (::utimensat(folder.get(), name, times, AT_SYMLINK_NOFOLLOW) != 0) {
    return disk_failure("date", path.text(), errno);
  }
  return {};
}

// The draft contains only what this archive made, so anything found there may be linked to.
Result<> DraftTree::put_hard_link(const Path& path, const TarEntry& entry) {
  BERTH_TRY(const Path target, Path::parse(entry.target, limits_));
  if (target.is_root()) return refuse(entry.path, "is a hard link to nothing");
  Result<Found> found = find(folder_, target.text(), Mounts::refused, target.text());
  if (!found && found.error().code == Errc::file_not_found) {
    return refuse(entry.path, "is a hard link to what is not in the archive before it");
  }
  if (!found) return std::unexpected(std::move(found).error());
  if (!S_ISREG(found->status.st_mode)) {
    return refuse(entry.path, "is a hard link to something that is not a regular file");
  }
  if (target.names() == path.names()) return {};
  BERTH_TRY(const Fd folder, folder_of(path, path.names().size() - 1));
  BERTH_DO(clear(folder.get(), path));
  if (::linkat(AT_FDCWD, path_of(found->at.get()).c_str(), folder.get(), path.name().c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
    return disk_failure("link", path.text(), errno);
  }
  return {};
}

Result<> DraftTree::finish() {
  // The deepest first: a folder with its final mode may not be passable any more.
  for (const auto& [path, look] : looks_ | std::views::reverse) {
    const Fd at{open_beneath(folder_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
    if (!at) return disk_failure("open", path, errno);
    BERTH_DO(set_look(at.get(), look.mode, options_.owner, path));
    const timespec times[] = {look.modified, look.modified};
    if (::futimens(at.get(), times) != 0) return disk_failure("date", path, errno);
  }
  return {};
}

}  // namespace berth::workspaces
