#include "workspaces/confined.hpp"

#include "workspaces/acting.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace berth::workspaces {
namespace {

constexpr mode_t folder_mode = 0755;

FileType type_of(mode_t mode) {
  if (S_ISREG(mode)) return FileType::file;
  if (S_ISDIR(mode)) return FileType::directory;
  if (S_ISLNK(mode)) return FileType::symbolic_link;
  if (S_ISFIFO(mode)) return FileType::pipe;
  if (S_ISSOCK(mode)) return FileType::socket;
  return FileType::device;
}

Result<Fd> open_folder(int folder, const std::string& way, Mounts mounts, std::string_view shown) {
  BERTH_TRY(Found found, files::find(folder, way, mounts, shown));
  if (S_ISLNK(found.status.st_mode)) return disk_failure("open", shown, ELOOP);
  if (!found.is_directory())
    return refuse(shown, "leads through something that is not a directory");
  return std::move(found.at);
}

Result<std::uint64_t> fill(int fd, const ByteSource& source, std::string_view shown,
                           std::uint64_t bytes_max) {
  std::uint64_t written = 0;
  while (true) {
    BERTH_TRY(const std::string_view piece, source());
    if (piece.empty()) return written;
    if (piece.size() > bytes_max - written) {
      return fail(Errc::body_too_large, "path '" + escaped(shown) + "': more than " +
                                            std::to_string(bytes_max) + " bytes were sent");
    }
    BERTH_DO(files::write_at(fd, piece, written, shown));
    written += piece.size();
  }
}

// One step of `make_folder`. It does not matter if another process makes the same folder at the
// same time.
Result<Fd> make_one(int folder, const std::string& name, const Confined& root, const Look& look,
                    std::string_view shown) {
  const bool fresh = ::mkdirat(folder, name.c_str(), 0700) == 0;
  if (!fresh && errno != EEXIST) return disk_failure("make", shown, errno);
  Fd made{open_beneath(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, root.mounts())};
  if (!made) return disk_failure("open", shown, errno);
  if (fresh) BERTH_DO(set_look(made.get(), look.mode, look.owner, shown));
  return made;
}

}  // namespace

FileView view_of(std::string name, const struct stat& status) {
  return FileView{.name = std::move(name),
                  .type = type_of(status.st_mode),
                  .mode = status.st_mode & 07777,
                  .bytes = static_cast<std::uint64_t>(status.st_size),
                  .modified = status.st_mtim};
}

Result<Fd> make_folder(const Confined& root, const Path& path, std::size_t count,
                       const Look& look) {
  const std::string way = path.text_of(count);
  const std::string shown = path.text();
  // Usually it exists.
  Result<Fd> found = open_folder(root.root(), way, root.mounts(), shown);
  if (found || found.error().code != Errc::file_not_found) return found;
  BERTH_TRY(Fd folder, open_folder(root.root(), ".", root.mounts(), shown));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = path.names()[i];
    Result<Fd> next = open_folder(folder.get(), name, root.mounts(), shown);
    if (!next && next.error().code == Errc::file_not_found) {
      next = make_one(folder.get(), name, root, look, shown);
    }
    BERTH_TRY(folder, std::move(next));
  }
  return folder;
}

Result<FileView> Confined::stat(std::string_view text) const {
  BERTH_TRY(const Path path, Path::parse(text, limits_));
  BERTH_TRY(const Acting acting, Acting::as(user_));
  BERTH_TRY(const Found found, files::find(root_.get(), path.text(), mounts_, path.text()));
  FileView view = view_of(path.is_root() ? "." : path.name(), found.status);
  if (view.type == FileType::symbolic_link) {
    BERTH_TRY(view.target, files::read_link(found.at.get(), "", path.text()));
  }
  return view;
}

Result<FolderView> Confined::list(std::string_view text) const {
  BERTH_TRY(const Path path, Path::parse(text, limits_));
  BERTH_TRY(const Acting acting, Acting::as(user_));
  BERTH_TRY(const Found found, files::find(root_.get(), path.text(), mounts_, path.text()));
  if (!found.is_directory()) return refuse(path.text(), "is not a directory");
  BERTH_TRY(files::Names names, files::Names::of(found.at.get(), path.text()));
  FolderView folder;
  while (true) {
    BERTH_TRY(std::optional<std::string> name, names.next());
    if (!name) break;
    if (folder.entries.size() == limits_.listed_max) {
      folder.extent = FolderView::Extent::cut;
      break;
    }
    struct stat status{};
    const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    // It was removed since its name was read.
    if (::fstatat(names.folder(), name->c_str(), &status, flags) != 0) continue;
    FileView view = view_of(*name, status);
    if (view.type == FileType::symbolic_link) {
      view.target = files::read_link(names.folder(), *name, *name).value_or("");
    }
    folder.entries.push_back(std::move(view));
  }
  std::ranges::sort(folder.entries, {}, &FileView::name);
  return folder;
}

Result<ReadableFile> Confined::open_file(std::string_view text) const {
  BERTH_TRY(const Path path, Path::parse(text, limits_));
  BERTH_TRY(const Acting acting, Acting::as(user_));
  BERTH_TRY(const Found found, files::find(root_.get(), path.text(), mounts_, path.text()));
  return ReadableFile::open(found, path.text(), limits_, hard_links_);
}

Result<FileView> Confined::read_file(std::string_view text, const ByteSink& sink) const {
  BERTH_TRY(const ReadableFile file, open_file(text));
  BERTH_DO(file.copy_to(sink));
  return view_of(std::string{text.substr(text.rfind('/') + 1)}, file.status());
}

Result<std::uint64_t> Confined::write_file(std::string_view text, const ByteSource& source,
                                           const Look& look) const {
  BERTH_TRY(const Path path, Path::parse(text, limits_));
  BERTH_TRY(const Acting acting, Acting::as(user_));
  const std::string shown = path.text();
  if (path.is_root() || text.ends_with('/')) return refuse(text, "is a directory");
  const Look folder_look{.mode = folder_mode, .owner = look.owner};
  BERTH_TRY(const Fd folder, make_folder(*this, path, path.names().size() - 1, folder_look));
  struct stat status{};
  const bool exists =
      ::fstatat(folder.get(), path.name().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) return disk_failure("look at", shown, errno);
  if (exists && !S_ISREG(status.st_mode)) {
    return refuse(shown, "is there and no regular file", "remove it first");
  }
  BERTH_TRY(files::DraftFile draft, files::DraftFile::in(folder.get(), mounts_, shown));
  BERTH_TRY(const std::uint64_t written, fill(draft.fd(), source, shown, limits_.file_bytes_max));
  BERTH_DO(set_look(draft.fd(), look.mode, look.owner, shown));
  if (look.modified) {
    const timespec times[] = {*look.modified, *look.modified};
    if (::futimens(draft.fd(), times) != 0) return disk_failure("date", shown, errno);
  }
  BERTH_DO(draft.put(path.name(), shown));
  return written;
}

Result<> Confined::make_directory(std::string_view text, const Look& look) const {
  BERTH_TRY(const Path path, Path::parse(text, limits_));
  BERTH_TRY(const Acting acting, Acting::as(user_));
  BERTH_DO(make_folder(*this, path, path.names().size(), look));
  return {};
}

Result<> Confined::remove(std::string_view text) const {
  BERTH_TRY(const Path path, Path::parse(text, limits_));
  BERTH_TRY(const Acting acting, Acting::as(user_));
  if (path.is_root()) return refuse(text, "is the root itself");
  BERTH_TRY(const Fd folder, open_folder(root(), path.parent_text(), mounts_, path.text()));
  return files::remove_beneath(folder.get(), path.name(), path.text(), limits_.removed_max);
}

}  // namespace berth::workspaces
