#include "workspaces/archive_in.hpp"

#include "workspaces/acting.hpp"
#include "workspaces/draft_tree.hpp"
#include "workspaces/placing.hpp"
#include "workspaces/removal.hpp"

#include <fcntl.h>

#include <cerrno>

namespace berth::workspaces {
namespace {

// The deepest existing folder on the path. What is made below it is on the same file system.
Result<Fd> nearest_folder(const Confined& root, const Path& path) {
  std::string way = ".";
  BERTH_TRY(Found nearest, find(root.root(), way, root.mounts(), path.text()));
  for (const std::string& name : path.names()) {
    Result<Found> next = find(nearest.at.get(), name, root.mounts(), path.text());
    if (!next && next.error().code == Errc::file_not_found) break;
    BERTH_TRY(nearest, std::move(next));
    if (S_ISLNK(nearest.status.st_mode)) return disk_failure("open", path.text(), ELOOP);
    if (!nearest.is_directory())
      return refuse(path.text(), "leads through something that is not a directory");
  }
  return std::move(nearest.at);
}

Result<Unpacked> unpack(int draft, const Path& path, const ByteSource& source, const Limits& limits,
                        const UnpackOptions& options) {
  Meter meter{options.progress};
  DraftTree tree{draft, path.names().size(), limits, options, meter};
  BERTH_TRY(TarReader reader, TarReader::open(source, limits));
  while (true) {
    BERTH_TRY(const std::optional<TarEntry> entry, reader.next());
    if (!entry) break;
    BERTH_DO(tree.put(*entry, reader));
  }
  BERTH_DO(reader.drain());
  BERTH_DO(tree.finish());
  return tree.unpacked();
}

Result<Unpacked> unpack_and_place(int draft, const Confined& root, const Path& path,
                                  const ByteSource& source, const UnpackOptions& options) {
  BERTH_TRY(Unpacked unpacked, unpack(draft, path, source, root.limits(), options));
  const Look look{.mode = 0755, .owner = options.owner};
  BERTH_TRY(const Fd target, make_folder(root, path, path.names().size(), look));
  BERTH_DO(place(draft, target.get(), path.text(), root));
  return unpacked;
}

}  // namespace

Result<Unpacked> archive_in(const Confined& root, std::string_view path, const ByteSource& source,
                            const UnpackOptions& options) {
  BERTH_TRY(const Path way, Path::parse(path, root.limits()));
  BERTH_TRY(const Acting acting, Acting::as(root.user()));
  BERTH_TRY(const Fd nearest, nearest_folder(root, way));
  const std::string name = draft_name();
  if (::mkdirat(nearest.get(), name.c_str(), 0700) != 0) {
    return disk_failure("make", way.text(), errno);
  }
  const Fd draft{
      open_beneath(nearest.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
  Result<Unpacked> unpacked = draft ? unpack_and_place(draft.get(), root, way, source, options)
                                    : Result<Unpacked>{disk_failure("open", way.text(), errno)};
  // The caller needs to know why the archive failed, not that its draft could not be removed
  // either.
  const Result<> removed = remove_beneath(nearest.get(), name, way.text(), root.limits());
  if (unpacked && !removed) return std::unexpected(removed.error());
  return unpacked;
}

}  // namespace berth::workspaces
