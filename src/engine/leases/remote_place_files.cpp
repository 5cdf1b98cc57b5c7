#include "engine/leases/remote_place_files.hpp"

#include "base/async/offload.hpp"
#include "workspaces/archive_out.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace berth::engine {
namespace {

using places::Exchange;
using places::RemoteEntry;
using places::RemoteLook;
using workspaces::Confined;
using workspaces::FileView;
using workspaces::Owner;
using workspaces::refuse;
using workspaces::source_of;

constexpr const char* staged = "tree";
constexpr mode_t private_mode = 0700;

FileView view_of(const RemoteEntry& entry) {
  FileView view = workspaces::view_of(entry.name, entry.status);
  view.target = entry.target;
  return view;
}

// The entry at the end of the path, for operations that need an existing one.
Result<RemoteEntry> expect_there(const RemoteLook& look, std::string_view shown) {
  switch (look.way) {
    case RemoteLook::Way::there: return look.entry;
    case RemoteLook::Way::missing: return workspaces::disk_failure("open", shown, ENOENT);
    case RemoteLook::Way::through_file: return workspaces::disk_failure("open", shown, ENOTDIR);
    case RemoteLook::Way::through_link: return workspaces::disk_failure("open", shown, ELOOP);
  }
  return fail(Errc::bug, "a way that leads nowhere");
}

// The same for operations that create it, and the folders above it.
Result<std::optional<RemoteEntry>> expect_makeable(const RemoteLook& look, std::string_view shown) {
  if (look.way == RemoteLook::Way::missing) return std::nullopt;
  if (look.way == RemoteLook::Way::through_file) {
    return refuse(shown, "leads through something that is not a directory");
  }
  BERTH_TRY(RemoteEntry entry, expect_there(look, shown));
  return std::optional{std::move(entry)};
}

Result<> expect_file(const RemoteEntry& entry, std::string_view shown) {
  if (S_ISLNK(entry.status.st_mode)) return workspaces::disk_failure("open", shown, ELOOP);
  return workspaces::may_leave(entry.status, shown, file_limits);
}

// Whether the provider's own file transfer was tried and turned out not to support this place. A
// worker that died has not refused anything.
bool goes_by_commands_now(const FarPlace& place, const Exchange& tried, const Error& why) {
  return why.code == Errc::plugin_call_failed && tried.by == Exchange::By::provider &&
         place.files->exchange(place.facts, place.path).by == Exchange::By::commands;
}

Result<std::string> tar_of(const Confined& files, const std::string& path, std::string_view shown) {
  std::string tar;
  const auto take = [&](std::string_view piece) -> Result<> {
    if (piece.size() > file_bytes_max - tar.size()) {
      return too_large_to_answer(shown, std::string{folder_remedy});
    }
    tar += piece;
    return {};
  };
  BERTH_DO(workspaces::archive_out(files, path, take));
  return tar;
}

}  // namespace

std::unexpected<Error> too_large_to_answer(std::string_view path, std::string remedy) {
  return fail(Errc::body_too_large,
              "path '" + workspaces::escaped(path) + "': is more than the " +
                  std::to_string(file_bytes_max) + " bytes of one answer",
              std::move(remedy));
}

std::string mode_text(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

FileEntry file_entry_of(const FileView& view) {
  FileEntry entry{.name = workspaces::escaped(view.name),
                  .type = view.type,
                  .bytes = static_cast<std::int64_t>(view.bytes),
                  .mode = mode_text(view.mode),
                  .mtime = workspaces::time_of(view.modified)};
  if (view.type == workspaces::FileType::symbolic_link) {
    entry.target = workspaces::escaped(view.target);
  }
  return entry;
}

// A folder for one request, beside those of concurrent requests. Its receiver may do anything in
// it.
class RemotePlaceFiles::Staging {
 public:
  static Result<Staging> make(const Exchange& exchange, const std::string& name) {
    Fd folder{::open(exchange.folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!folder) return workspaces::disk_failure("open", exchange.folder, errno);
    Confined all{std::move(folder), workspaces::Mounts::refused, file_limits};
    std::optional<Owner> user;
    if (exchange.user) user = Owner{.uid = exchange.user->uid, .gid = exchange.user->gid};
    BERTH_DO(all.make_directory(name, {.mode = private_mode, .owner = user}));
    Fd own{workspaces::open_beneath(all.root(), name, O_PATH | O_DIRECTORY,
                                    workspaces::Mounts::refused)};
    if (!own) return workspaces::disk_failure("open", name, errno);
    Confined files{std::move(own), workspaces::Mounts::refused, file_limits, user};
    return Staging{std::move(all), std::move(files), name, exchange};
  }

  const Confined& files() const { return files_; }
  const Exchange& exchange() const { return exchange_; }
  std::string path_of(const std::string& name) const {
    return exchange_.folder + "/" + name_ + "/" + name;
  }
  Result<> remove() const { return all_.remove(name_); }

 private:
  Staging(Confined all, Confined files, std::string name, Exchange exchange)
      : all_(std::move(all)),
        files_(std::move(files)),
        name_(std::move(name)),
        exchange_(std::move(exchange)) {}

  Confined all_;
  Confined files_;
  std::string name_;
  Exchange exchange_;
};

auto RemotePlaceFiles::stage(const Exchange& exchange) -> Task<std::shared_ptr<const Staging>> {
  const std::string name = random_base64url(random_, 18);
  co_return co_await offload(pool_, [&]() -> Result<std::shared_ptr<const Staging>> {
    BERTH_TRY(Staging made, Staging::make(exchange, name));
    return std::make_shared<const Staging>(std::move(made));
  });
}

// What cannot be removed now is removed at the next server start.
asio::awaitable<void> RemotePlaceFiles::clear(std::shared_ptr<const Staging> staging) {
  (void)co_await offload(pool_, [&] { return staging->remove(); });
}

Task<std::variant<FilePart, FolderListing>> RemotePlaceFiles::read(const FarPlace& place,
                                                                   const FileRead& wanted) {
  BERTH_CO_TRY(const RemoteLook look, co_await place.files->look(place.facts, place.path));
  BERTH_CO_TRY(const RemoteEntry entry, expect_there(look, place.shown));
  if (S_ISDIR(entry.status.st_mode)) co_return co_await list(place);
  BERTH_CO_DO(expect_file(entry, place.shown));
  const auto bytes = static_cast<std::uint64_t>(entry.status.st_size);
  const std::uint64_t offset = std::min(wanted.offset, bytes);
  const std::uint64_t rest = bytes - offset;
  const std::uint64_t count = std::min(rest, wanted.bytes_max.value_or(rest));
  if (count > file_bytes_max) {
    co_return too_large_to_answer(place.shown, "read it in parts with offset and limitBytes");
  }
  FilePart part{.bytes = {},
                .mode = mode_text(entry.status.st_mode),
                .mtime = workspaces::time_of(entry.status.st_mtim),
                .file_bytes = bytes,
                .next_offset = offset + count,
                .eof = count == rest};
  const Exchange exchange = place.files->exchange(place.facts, place.path);
  Result<std::string> content{std::string{}};
  const bool is_whole = exchange.by == Exchange::By::provider && count == bytes;
  if (is_whole) content = co_await read_whole(place, exchange, bytes);
  if (!is_whole || (!content && goes_by_commands_now(place, exchange, content.error()))) {
    content = co_await place.files->read(place.facts, place.path, offset, count);
  }
  BERTH_CO_TRY(part.bytes, std::move(content));
  co_return std::variant<FilePart, FolderListing>{std::move(part)};
}

Task<std::string> RemotePlaceFiles::read_whole(const FarPlace& place, const Exchange& exchange,
                                               std::uint64_t bytes) {
  BERTH_CO_TRY(const auto staging, co_await stage(exchange));
  const std::string local = staging->path_of(staged);
  const Result<> fetched = co_await place.files->fetch(place.facts, place.path, S_IFREG, local);
  Result<std::string> content = co_await offload(pool_, [&]() -> Result<std::string> {
    BERTH_DO(fetched);
    BERTH_TRY(const workspaces::ReadableFile file, staging->files().open_file(staged));
    if (file.bytes() == bytes) return file.read_part(0, bytes);
    return fail(Errc::conflict,
                "path '" + workspaces::escaped(place.shown) + "': changed while it was read",
                "try again");
  });
  co_await clear(staging);
  co_return content;
}

Task<std::variant<FilePart, FolderListing>> RemotePlaceFiles::list(const FarPlace& place) {
  BERTH_CO_TRY(places::RemoteListing found,
               co_await place.files->list(place.facts, place.path, file_limits.listed_max));
  std::ranges::sort(found.entries, {}, &RemoteEntry::name);
  FolderListing listing{.entries = {},
                        .is_truncated = found.extent == places::RemoteListing::Extent::cut};
  for (const RemoteEntry& entry : found.entries) {
    listing.entries.push_back(file_entry_of(view_of(entry)));
  }
  co_return std::variant<FilePart, FolderListing>{std::move(listing)};
}

Task<FileWritten> RemotePlaceFiles::write(const FarPlace& place, mode_t mode,
                                          std::string_view bytes) {
  if (place.path.rest.empty() || place.shown.ends_with('/')) {
    co_return refuse(place.shown, "is a directory");
  }
  BERTH_CO_TRY(const RemoteLook look, co_await place.files->look(place.facts, place.path));
  BERTH_CO_TRY(const auto old, expect_makeable(look, place.shown));
  if (old && !S_ISREG(old->status.st_mode)) {
    co_return refuse(place.shown, "is there and no regular file", "remove it first");
  }
  const Exchange exchange = place.files->exchange(place.facts, place.path);
  Result<> sent;
  if (exchange.by == Exchange::By::provider) {
    BERTH_CO_TRY(const auto staging, co_await stage(exchange));
    sent = co_await send_from(place, *staging, mode, bytes);
    co_await clear(staging);
  }
  if (exchange.by == Exchange::By::commands ||
      (!sent && goes_by_commands_now(place, exchange, sent.error()))) {
    sent = co_await place.files->write(place.facts, place.path, mode, bytes);
  }
  BERTH_CO_DO(sent);
  co_return old ? FileWritten::replaced : FileWritten::created;
}

Task<> RemotePlaceFiles::send_from(const FarPlace& place, const Staging& staging, mode_t mode,
                                   std::string_view bytes) {
  BERTH_CO_DO(co_await offload(pool_, [&] {
    const Confined& files = staging.files();
    return files.write_file(staged, source_of(bytes), {.mode = 0600, .owner = files.user()});
  }));
  const std::string local = staging.path_of(staged);
  co_return co_await place.files->send_file(place.facts, place.path, mode, local, bytes.size());
}

Task<> RemotePlaceFiles::remove(const FarPlace& place) {
  if (place.path.rest.empty()) co_return refuse(place.shown, "names nothing to remove");
  BERTH_CO_TRY(const RemoteLook look, co_await place.files->look(place.facts, place.path));
  BERTH_CO_DO(expect_there(look, place.shown));
  co_return co_await place.files->remove(place.facts, place.path);
}

Task<std::string> RemotePlaceFiles::archive(const FarPlace& place) {
  BERTH_CO_TRY(const RemoteLook look, co_await place.files->look(place.facts, place.path));
  BERTH_CO_TRY(const RemoteEntry entry, expect_there(look, place.shown));
  if (S_ISDIR(entry.status.st_mode)) {
    BERTH_CO_TRY(const auto unfit, co_await place.files->find_unfit(place.facts, place.path));
    if (unfit) {
      co_return refuse(*unfit, "is not a file, folder or link, or is a file with a second name",
                       "remove it, or fetch what lies beside it");
    }
  } else {
    BERTH_CO_DO(expect_file(entry, place.shown));
  }
  while (true) {
    const Exchange exchange = place.files->exchange(place.facts, place.path);
    BERTH_CO_TRY(const auto staging, co_await stage(exchange));
    Result<std::string> tar = co_await archive_from(place, *staging, entry);
    co_await clear(staging);
    if (tar || !goes_by_commands_now(place, exchange, tar.error())) co_return tar;
  }
}

Task<std::string> RemotePlaceFiles::archive_from(const FarPlace& place, const Staging& staging,
                                                 const RemoteEntry& entry) {
  const bool is_folder = S_ISDIR(entry.status.st_mode);
  std::string path = is_folder ? staged : entry.name;
  if (staging.exchange().by == Exchange::By::provider) {
    const std::string local = staging.path_of(path);
    BERTH_CO_DO(co_await place.files->fetch(place.facts, place.path, entry.status.st_mode, local));
    co_return co_await offload(pool_, [&]() -> Result<std::string> {
      BERTH_TRY(const FileView view, staging.files().stat(path));
      if (view.type != view_of(entry).type) {
        return refuse(place.shown, "was handed over as something else");
      }
      return tar_of(staging.files(), path, place.shown);
    });
  }
  BERTH_CO_TRY(const std::string raw,
               co_await place.files->pack(place.facts, place.path, file_bytes_max));
  if (raw.size() > file_bytes_max) {
    co_return too_large_to_answer(place.shown, std::string{folder_remedy});
  }
  if (!is_folder) path = std::string{staged} + "/" + entry.name;
  co_return co_await offload(pool_, [&]() -> Result<std::string> {
    BERTH_DO(workspaces::archive_in(staging.files(), staged, source_of(raw),
                                    {.links = workspaces::LinkRule::any}));
    return tar_of(staging.files(), path, place.shown);
  });
}

Task<> RemotePlaceFiles::unpack(const FarPlace& place, std::string_view tar) {
  BERTH_CO_TRY(const RemoteLook look, co_await place.files->look(place.facts, place.path));
  BERTH_CO_TRY(const auto old, expect_makeable(look, place.shown));
  if (old && S_ISLNK(old->status.st_mode)) {
    co_return workspaces::disk_failure("open", place.shown, ELOOP);
  }
  if (old && !S_ISDIR(old->status.st_mode)) co_return refuse(place.shown, "is not a directory");
  while (true) {
    const Exchange exchange = place.files->exchange(place.facts, place.path);
    BERTH_CO_TRY(const auto staging, co_await stage(exchange));
    Result<> unpacked = co_await unpack_from(place, *staging, tar);
    co_await clear(staging);
    if (unpacked || !goes_by_commands_now(place, exchange, unpacked.error())) co_return unpacked;
  }
}

Task<> RemotePlaceFiles::unpack_from(const FarPlace& place, const Staging& staging,
                                     std::string_view tar) {
  const bool is_moved = staging.exchange().by == Exchange::By::provider;
  BERTH_CO_TRY(
      const std::string clean, co_await offload(pool_, [&]() -> Result<std::string> {
        const Confined& files = staging.files();
        BERTH_DO(files.make_directory(staged, {.mode = private_mode, .owner = files.user()}));
        BERTH_DO(
            workspaces::archive_in(files, staged, source_of(tar),
                                   {.owner = files.user(), .links = workspaces::LinkRule::any}));
        if (is_moved) return std::string{};
        return tar_of(files, staged, place.shown);
      }));
  if (is_moved) {
    const std::string local = staging.path_of(staged);
    co_return co_await place.files->send_folder(place.facts, place.path, local);
  }
  co_return co_await place.files->unpack(place.facts, place.path, clean);
}

}  // namespace berth::engine
