#include "engine/leases/lease_files.hpp"

#include "base/async/offload.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "store/places/leases.hpp"
#include "workspaces/archive_out.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace berth::engine {
namespace {

using workspaces::Confined;
using workspaces::FileView;
using workspaces::Owner;
using workspaces::source_of;

// Shared with remote places.
constexpr workspaces::Limits limits = file_limits;

Result<FolderListing> list(const Confined& files, const std::string& path) {
  BERTH_TRY(const workspaces::FolderView folder, files.list(path));
  FolderListing listing{.entries = {},
                        .is_truncated = folder.extent == workspaces::FolderView::Extent::cut};
  listing.entries.reserve(folder.entries.size());
  for (const FileView& view : folder.entries) listing.entries.push_back(file_entry_of(view));
  return listing;
}

Result<FilePart> read_part(const Confined& files, const std::string& path, const FileRead& wanted) {
  BERTH_TRY(const workspaces::ReadableFile file, files.open_file(path));
  const std::uint64_t offset = std::min(wanted.offset, file.bytes());
  const std::uint64_t rest = file.bytes() - offset;
  const std::uint64_t count = std::min(rest, wanted.bytes_max.value_or(rest));
  if (count > LeaseFiles::bytes_max) {
    return too_large_to_answer(path, "read it in parts with offset and limitBytes");
  }
  FilePart part{.bytes = {},
                .mode = mode_text(file.status().st_mode),
                .mtime = workspaces::time_of(file.status().st_mtim),
                .file_bytes = file.bytes(),
                .next_offset = offset + count,
                .eof = count == rest};
  BERTH_TRY(part.bytes, file.read_part(offset, count));
  return part;
}

// As the commands of the place read it; what is left absolute, the library refuses.
std::string way_to(const std::optional<std::string>& workdir, std::string path) {
  if (!workdir) return path;
  const bool is_absolute = path.starts_with('/');
  const std::string whole = is_absolute ? std::move(path) : *workdir + "/" + path;
  const std::size_t start = whole.find_first_not_of('/');
  return start == std::string::npos ? std::string{} : whole.substr(start);
}

}  // namespace

Task<LeaseFiles::Found> LeaseFiles::look(const core::Call& call, const core::LeaseId& id,
                                         std::string path) {
  using Row = core::Stored<core::LeaseRecord>;
  BERTH_CO_TRY(const Row row, co_await services_.store.read([&](store::Session& s) -> Result<Row> {
    BERTH_TRY(Row found, store::find_lease_record(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_held(s, found.value, work_.node()));
    BERTH_DO(expect_allowed(s, services_, found.value));
    return found;
  }));
  co_return co_await open(row.value, std::move(path));
}

Task<LeaseFiles::Found> LeaseFiles::intend(const core::Call& call, const core::LeaseId& id,
                                           std::string_view action, std::string path) {
  BERTH_CO_TRY(const auto row,
               co_await services_.store.write(
                   [&](store::Session& s) -> Result<core::Stored<core::LeaseRecord>> {
                     BERTH_TRY(auto found,
                               store::find_lease_record(s, core::Reach::of(call.who), id));
                     BERTH_DO(expect_held(s, found.value, work_.node()));
                     BERTH_DO(expect_allowed(s, services_, found.value));
                     BERTH_DO(record(s, services_, call,
                                     {.company_id = found.value.company_id,
                                      .action = action,
                                      .entity_type = "environment_lease",
                                      .entity_id = id.str(),
                                      .details = {{"path", workspaces::escaped(path)}}}));
                     return found;
                   }));
  co_return co_await open(row.value, std::move(path));
}

Task<LeaseFiles::Found> LeaseFiles::open(const core::LeaseRecord& lease, std::string path) {
  BERTH_CO_TRY(places::Place* const place, work_.place_of(lease));
  BERTH_CO_TRY(places::PlaceRef facts, co_await work_.facts(lease));
  if (place->abilities().remote_files != nullptr) {
    BERTH_CO_TRY(FarPlace far, co_await open_far(*place, std::move(facts), std::move(path)));
    co_return Found{std::move(far)};
  }
  BERTH_CO_TRY(places::Files* const near, need<places::Lack::files>(*place, facts));
  BERTH_CO_TRY(places::FileRoot root, co_await near->files(facts));
  const bool has_mounts = root.mounts == places::FileRoot::Mounts::entered;
  // If the folder is the commands' "/", only they follow links, and a hard link can only name files
  // that they reach anyway.
  const bool is_all = root.workdir.has_value();
  std::optional<Owner> user;
  if (root.user) user = Owner{.uid = root.user->uid, .gid = root.user->gid};
  co_return Found{Tree{
      .files =
          Confined{std::move(root.folder),
                   has_mounts ? workspaces::Mounts::entered : workspaces::Mounts::refused, limits,
                   user, is_all ? workspaces::HardLinks::taken : workspaces::HardLinks::refused},
      .path = way_to(root.workdir, std::move(path)),
      .links = is_all ? workspaces::LinkRule::any : workspaces::LinkRule::inside}};
}

Task<FarPlace> LeaseFiles::open_far(places::Place& place, places::PlaceRef facts,
                                    std::string path) {
  const std::size_t start = path.find_first_not_of('/');
  const std::string rest = start == std::string::npos ? "" : path.substr(start);
  BERTH_CO_TRY(const workspaces::Path names, workspaces::Path::parse(rest, limits));
  places::RemotePath way{.folder = "/", .rest = names.is_root() ? "" : names.text()};
  if (!path.starts_with('/')) {
    const std::optional<std::string> anywhere;
    BERTH_CO_TRY(places::Commands* const commands, need<places::Lack::commands>(place, facts));
    BERTH_CO_TRY(const places::Workspace work, co_await commands->realize(facts, anywhere));
    if (!work.cwd.starts_with('/')) {
      co_return fail(Errc::workspace_realization_failed,
                     facts.key.name() + ": its commands work in no absolute folder");
    }
    way.folder = work.cwd;
  }
  places::RemoteFiles* const files = place.abilities().remote_files;
  co_return FarPlace{
      .files = files, .facts = std::move(facts), .path = std::move(way), .shown = std::move(path)};
}

Task<std::variant<FilePart, FolderListing>> LeaseFiles::read(core::Call call, core::LeaseId id,
                                                             FileRead wanted) {
  using Answer = std::variant<FilePart, FolderListing>;
  BERTH_CO_TRY(const Found found, co_await look(call, id, wanted.path));
  const auto* const tree = std::get_if<Tree>(&found);
  if (tree == nullptr) co_return co_await far_.read(std::get<FarPlace>(found), wanted);
  co_return co_await offload(pool_, [&]() -> Result<Answer> {
    BERTH_TRY(const FileView view, tree->files.stat(tree->path));
    if (view.type == workspaces::FileType::directory) return list(tree->files, tree->path);
    return read_part(tree->files, tree->path, wanted);
  });
}

Task<LeaseFiles::Written> LeaseFiles::write(core::Call call, core::LeaseId id, FileWrite wanted,
                                            std::string_view bytes) {
  BERTH_CO_TRY(const Found found,
               co_await intend(call, id, "environment.lease_file_write", wanted.path));
  const auto* const tree = std::get_if<Tree>(&found);
  if (tree == nullptr) {
    co_return co_await far_.write(std::get<FarPlace>(found), wanted.mode, bytes);
  }
  co_return co_await offload(pool_, [&]() -> Result<Written> {
    const bool is_there = tree->files.stat(tree->path).has_value();
    workspaces::Look look{.mode = wanted.mode, .owner = tree->files.user()};
    if (wanted.mtime) look.modified = workspaces::timespec_of(*wanted.mtime);
    BERTH_DO(tree->files.write_file(tree->path, source_of(bytes), look));
    return is_there ? Written::replaced : Written::created;
  });
}

Task<> LeaseFiles::remove(core::Call call, core::LeaseId id, std::string path) {
  BERTH_CO_TRY(const Found found, co_await intend(call, id, "environment.lease_file_remove", path));
  // An omitted path must not delete everything that the commands have made.
  const Result<workspaces::Path> named = workspaces::Path::parse(path, limits);
  if (named && named->is_root()) co_return workspaces::refuse(path, "names nothing to remove");
  const auto* const tree = std::get_if<Tree>(&found);
  if (tree == nullptr) co_return co_await far_.remove(std::get<FarPlace>(found));
  co_return co_await offload(pool_, [&] { return tree->files.remove(tree->path); });
}

Task<std::string> LeaseFiles::archive(core::Call call, core::LeaseId id, std::string path) {
  BERTH_CO_TRY(const Found found, co_await look(call, id, std::move(path)));
  const auto* const tree = std::get_if<Tree>(&found);
  if (tree == nullptr) co_return co_await far_.archive(std::get<FarPlace>(found));
  co_return co_await offload(pool_, [&]() -> Result<std::string> {
    std::string tar;
    const auto take = [&](std::string_view piece) -> Result<> {
      if (piece.size() > bytes_max - tar.size()) {
        return too_large_to_answer(tree->path, std::string{folder_remedy});
      }
      tar += piece;
      return {};
    };
    BERTH_DO(workspaces::archive_out(tree->files, tree->path, take));
    return tar;
  });
}

Task<> LeaseFiles::unpack(core::Call call, core::LeaseId id, std::string path,
                          std::string_view tar) {
  BERTH_CO_TRY(const Found found,
               co_await intend(call, id, "environment.lease_unpack", std::move(path)));
  const auto* const tree = std::get_if<Tree>(&found);
  if (tree == nullptr) co_return co_await far_.unpack(std::get<FarPlace>(found), tar);
  co_return co_await offload(pool_, [&]() -> Result<> {
    BERTH_DO(workspaces::archive_in(tree->files, tree->path, source_of(tar),
                                    {.owner = tree->files.user(), .links = tree->links}));
    return {};
  });
}

}  // namespace berth::engine
