#include "workspaces/archive_out.hpp"

#include "files/tar_writer.hpp"
#include "files/walk.hpp"
#include "workspaces/acting.hpp"

namespace berth::workspaces {
namespace {

// One entry on its way into the archive.
struct Outgoing {
  std::string path;   // in the archive
  std::string shown;  // from the root
  const Found& found;
};

// Walks the tree twice with the same rules: first to check, then to write.
class Packing {
 public:
  Packing(const Confined& root, const Path& path, const PackOptions& options)
      : root_(root), path_(path), unfit_(options.unfit), meter_(options.progress) {}

  Result<Packed> run(const ByteSink& sink) {
    const std::string shown = path_.text();
    BERTH_TRY(const Found start, files::find(root_.root(), shown, root_.mounts(), shown));
    BERTH_DO(visit(start, nullptr));
    packed_ = {};
    files::TarWriter tar{sink, meter_};
    BERTH_DO(tar.open());
    BERTH_DO(visit(start, &tar));
    BERTH_DO(tar.close());
    packed_.entries = meter_.now().entries;
    return std::move(packed_);
  }

 private:
  Result<> visit(const Found& start, files::TarWriter* tar) {
    const std::string shown = path_.text();
    if (!start.is_directory()) return take({path_.name(), shown, start}, tar);
    BERTH_TRY(files::Walk walk,
              files::Walk::from(start.at.get(), shown, root_.mounts(), root_.limits()));
    while (true) {
      BERTH_TRY(std::optional<files::Walk::Item> item, walk.next());
      if (!item) return {};
      if (files::is_draft_name(item->name)) {
        walk.skip_content();
        continue;
      }
      std::string place = path_.is_root() ? item->path : shown + "/" + item->path;
      if (item->refusal) {
        BERTH_DO(leave_out(place, *std::move(item->refusal)));
      } else {
        BERTH_DO(take({std::move(item->path), std::move(place), item->found}, tar));
      }
    }
  }

  Result<> take(const Outgoing& thing, files::TarWriter* tar) {
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
    if (S_ISDIR(status.st_mode)) return tar->add(thing.path, status);
    if (S_ISLNK(status.st_mode)) {
      BERTH_TRY(const std::string target, files::read_link(thing.found.at.get(), "", thing.shown));
      return tar->add(thing.path, status, target);
    }
    BERTH_TRY(const ReadableFile file,
              ReadableFile::open(thing.found, thing.shown, root_.limits(), root_.hard_links()));
    return tar->add_file(thing.path, file);
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
  files::Meter meter_;
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
