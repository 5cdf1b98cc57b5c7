#include "workspaces/archive_out.hpp"

#include "base/text.hpp"
#include "workspaces/acting.hpp"
#include "workspaces/walk.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>

namespace berth::workspaces {
namespace {

struct ArchiveKind {
  using Raw = ::archive*;
  static Raw none() { return nullptr; }
  static void dispose(Raw archive) noexcept { ::archive_write_free(archive); }
};
struct EntryKind {
  using Raw = ::archive_entry*;
  static Raw none() { return nullptr; }
  static void dispose(Raw entry) noexcept { ::archive_entry_free(entry); }
};

// One entry on its way into the archive.
struct Outgoing {
  std::string path;   // in the archive
  std::string shown;  // from the root
  const Found& found;
};

class TarWriter {
 public:
  TarWriter(const ByteSink& sink, Meter& meter) : sink_(sink), meter_(meter) {}
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;
  // Freeing the archive writes a proper end even if it is incomplete; that must not reach the sink.
  ~TarWriter() { given_up_ = true; }

  Result<> open() {
    archive_ = Owned<ArchiveKind>{::archive_write_new()};
    if (!archive_) return fail(Errc::io_failed, "no memory for an archive writer");
    ::archive_write_set_format_pax(archive_.get());
    // Sends a few large pieces to the sink instead of many small ones; the end is padded as tar
    // requires.
    ::archive_write_set_bytes_per_block(archive_.get(), 128 << 10);
    ::archive_write_set_bytes_in_last_block(archive_.get(), 10240);
    return checked(::archive_write_open(archive_.get(), this, nullptr, &TarWriter::pass, nullptr));
  }

  Result<> add(const Outgoing& thing, const Confined& root) {
    const struct stat& status = thing.found.status;
    if (S_ISDIR(status.st_mode)) return add_header(thing, status, {});
    if (S_ISLNK(status.st_mode)) {
      BERTH_TRY(const std::string target, read_link(thing.found.at.get(), "", thing.shown));
      return add_header(thing, status, target);
    }
    BERTH_TRY(const ReadableFile file,
              ReadableFile::open(thing.found, thing.shown, root.limits(), root.hard_links()));
    BERTH_DO(add_header(thing, status, {}));
    return file.copy_to([this](std::string_view piece) { return add_content(piece); });
  }

  Result<> close() { return checked(::archive_write_close(archive_.get())); }

 private:
  static la_ssize_t pass(::archive* archive, void* self, const void* bytes, std::size_t size) {
    auto& writer = *static_cast<TarWriter*>(self);
    if (writer.given_up_) return static_cast<la_ssize_t>(size);
    Result<> done = writer.sink_({static_cast<const char*>(bytes), size});
    if (done) return static_cast<la_ssize_t>(size);
    writer.error_ = std::move(done).error();
    ::archive_set_error(archive, EIO, "the sink failed");
    return -1;
  }

  // A warning means that a name is not valid in our locale: such names are written as bytes.
  Result<> checked(int status) const {
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return {};
    if (error_) return std::unexpected(*error_);
    const char* said = ::archive_error_string(archive_.get());
    return fail(Errc::io_failed, "archive: " + as_utf8(said != nullptr ? said : "failed"));
  }

  Result<> add_header(const Outgoing& thing, const struct stat& status, const std::string& target) {
    const Owned<EntryKind> entry{::archive_entry_new()};
    if (!entry) return fail(Errc::io_failed, "no memory for an archive entry");
    ::archive_entry* raw = entry.get();
    ::archive_entry_set_pathname(raw, thing.path.c_str());
    ::archive_entry_set_mode(raw, status.st_mode & (S_IFMT | 0777));
    ::archive_entry_set_mtime(raw, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    ::archive_entry_set_size(raw, S_ISREG(status.st_mode) ? status.st_size : 0);
    if (S_ISLNK(status.st_mode)) ::archive_entry_set_symlink(raw, target.c_str());
    BERTH_DO(checked(::archive_write_header(archive_.get(), raw)));
    meter_.add_entry();
    return {};
  }

  Result<> add_content(std::string_view piece) {
    while (!piece.empty()) {
      const la_ssize_t wrote = ::archive_write_data(archive_.get(), piece.data(), piece.size());
      if (wrote <= 0) return checked(ARCHIVE_FATAL);
      meter_.add_bytes(static_cast<std::uint64_t>(wrote));
      piece.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }

  const ByteSink& sink_;
  Meter& meter_;
  std::optional<Error> error_;  // from the sink
  bool given_up_ = false;
  Owned<ArchiveKind> archive_;
};

// Walks the tree twice with the same rules: first to check, then to write.
class Packing {
 public:
  Packing(const Confined& root, const Path& path, const PackOptions& options)
      : root_(root), path_(path), unfit_(options.unfit), meter_(options.progress) {}

  Result<Packed> run(const ByteSink& sink) {
    const std::string shown = path_.text();
    BERTH_TRY(const Found start, find(root_.root(), shown, root_.mounts(), shown));
    BERTH_DO(visit(start, nullptr));
    packed_ = {};
    TarWriter tar{sink, meter_};
    BERTH_DO(tar.open());
    BERTH_DO(visit(start, &tar));
    BERTH_DO(tar.close());
    packed_.entries = meter_.now().entries;
    return std::move(packed_);
  }

 private:
  Result<> visit(const Found& start, TarWriter* tar) {
    const std::string shown = path_.text();
    if (!start.is_directory()) return take({path_.name(), shown, start}, tar);
    BERTH_TRY(Walk walk, Walk::from(start.at.get(), shown, root_.mounts(), root_.limits()));
    while (true) {
      BERTH_TRY(std::optional<Walk::Item> item, walk.next());
      if (!item) return {};
      if (is_draft_name(item->name)) continue;
      std::string place = path_.is_root() ? item->path : shown + "/" + item->path;
      if (item->refusal) {
        BERTH_DO(leave_out(place, *std::move(item->refusal)));
      } else {
        BERTH_DO(take({std::move(item->path), std::move(place), item->found}, tar));
      }
    }
  }

  Result<> take(const Outgoing& thing, TarWriter* tar) {
    const struct stat& status = thing.found.status;
    if (!S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode)) {
      Result<> fit = may_leave(status, thing.shown, root_.limits(), root_.hard_links());
      if (!fit && fit.error().code == Errc::file_not_found) return {};
      if (!fit) return leave_out(thing.shown, std::move(fit).error());
      packed_.bytes += static_cast<std::uint64_t>(status.st_size);
      if (packed_.bytes > root_.limits().bytes_max) {
        return refuse(path_.text(),
                      "holds more than " + std::to_string(root_.limits().bytes_max) + " bytes");
      }
    }
    if (tar == nullptr) return {};
    return tar->add(thing, root_);
  }

  Result<> leave_out(const std::string& place, Error refusal) {
    if (unfit_ == Unfit::refused) return std::unexpected(std::move(refusal));
    if (++packed_.left_out_count <= Packed::named_max) {
      packed_.left_out.push_back({.path = place, .rule = std::move(refusal.message)});
    }
    return {};
  }

  const Confined& root_;
  const Path& path_;
  Unfit unfit_;
  Meter meter_;
  Packed packed_;
};

}  // namespace

Result<Packed> archive_out(const Confined& root, std::string_view path, const ByteSink& sink,
                           const PackOptions& options) {
  BERTH_TRY(const Path way, Path::parse(path, root.limits()));
  BERTH_TRY(const Acting acting, Acting::as(root.user()));
  return Packing{root, way, options}.run(sink);
}

}  // namespace berth::workspaces
