#include "workspaces/archive_in.hpp"

#include "files/tar_reader.hpp"
#include "files/tree_writer.hpp"
#include "workspaces/acting.hpp"

#include <cerrno>

namespace berth::workspaces {
namespace {

// The deepest existing folder on the path. What is made below it is on the same file system.
Result<Fd> nearest_folder(const Confined& root, const Path& path) {
  BERTH_TRY(Found nearest, files::find(root.root(), ".", root.mounts(), path.text()));
  for (const std::string& name : path.names()) {
    Result<Found> next = files::find(nearest.at.get(), name, root.mounts(), path.text());
    if (!next && next.error().code == Errc::file_not_found) break;
    BERTH_TRY(nearest, std::move(next));
    if (S_ISLNK(nearest.status.st_mode)) return disk_failure("open", path.text(), ELOOP);
    if (!nearest.is_directory())
      return refuse(path.text(), "leads through something that is not a directory");
  }
  return std::move(nearest.at);
}

Result<Unpacked> unpack(const files::DraftFolder& draft, const Path& path, const ByteSource& source,
                        const Limits& limits, const UnpackOptions& options) {
  files::Meter meter{options.progress};
  BERTH_TRY(Fd folder, draft.open());
  files::TreeWriter tree{std::move(folder),
                         {.rules = files::Rules::workspace,
                          .limits = limits,
                          .owner = options.owner,
                          .links = options.links,
                          .depth = path.names().size(),
                          .link_remedy = options.link_remedy},
                         meter};
  const files::TarOptions tar{.rules = files::Rules::workspace, .limits = limits};
  BERTH_TRY(files::Content content, files::Content::open(source, tar));
  BERTH_TRY(files::TarReader reader, files::TarReader::open(content));
  BERTH_DO(tree.put_all(reader, tar.form));
  BERTH_DO(content.drain());
  BERTH_DO(tree.finish());
  return Unpacked{.entries = tree.tally().entries,
                  .bytes = tree.tally().bytes,
                  .set_id_bits_dropped = tree.tally().set_id_bits_removed};
}

}  // namespace

Result<Unpacked> archive_in(const Confined& root, std::string_view path, const ByteSource& source,
                            const UnpackOptions& options) {
  BERTH_TRY(const Path way, Path::parse(path, root.limits()));
  BERTH_TRY(const Acting acting, Acting::as(root.user()));
  BERTH_TRY(const Fd nearest, nearest_folder(root, way));
  BERTH_TRY(auto draft,
            files::DraftFolder::in(nearest.get(), way.text(), root.limits().removed_max));
  BERTH_TRY(const Unpacked unpacked, unpack(draft, way, source, root.limits(), options));
  const Look look{.mode = 0755, .owner = options.owner};
  BERTH_TRY(const Fd target, make_folder(root, way, way.names().size(), look));
  BERTH_DO(draft.merge_into(target.get(), root.mounts()));
  BERTH_DO(draft.remove());
  return unpacked;
}

}  // namespace berth::workspaces
