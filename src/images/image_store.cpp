#include "images/image_store.hpp"

#include "base/clock.hpp"
#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "base/text.hpp"
#include "files/beneath.hpp"
#include "files/tree_digest.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace berth::images {
namespace {

constexpr std::size_t record_bytes_max = 8 << 20;
constexpr std::size_t image_name_bytes_max = 256;
constexpr std::size_t environments_bytes_max = 16 << 20;
constexpr const char* environments_file = "/environments.json";
constexpr std::ptrdiff_t other_sources_max = 1000;  // the latest are kept
constexpr std::size_t digest_start_min = 6;         // digits that are enough to name an image

// "sha256:HEX" as a folder name.
std::string thing_of(std::string_view digest) {
  std::string thing{digest};
  std::ranges::replace(thing, ':', '-');
  return thing;
}

std::string digest_of(std::string_view thing) {
  std::string digest{thing};
  std::ranges::replace(digest, '-', ':');
  return digest;
}

// Whether it is the image's digest, a prefix of it, or the digest of a source.
bool is_digest_of(const Image& image, std::string_view named) {
  constexpr std::string_view prefix = "sha256:";
  const std::string_view digits = named.starts_with(prefix) ? named.substr(prefix.size()) : named;
  if (digits.size() < digest_start_min) return false;
  const std::string start = std::string{prefix} + std::string{digits};
  const std::vector<std::string> sources = sources_of(image);
  return image.digest.starts_with(start) || std::ranges::find(sources, start) != sources.end();
}

std::unexpected<Error> image_not_found_error(std::string_view named) {
  return fail(Errc::image_not_found, "there is no image " + in_quotes(named),
              "'berth image list' shows the images; 'berth image import' adds one");
}

std::unexpected<Error> in_use(const Image& image) {
  const std::size_t others = image.holders.size() - 1;
  Error error{.code = Errc::image_in_use,
              .message = image.digest + " is in use by " + describe_holder(image.holders.front()) +
                         (others > 0 ? " and " + std::to_string(others) + " more" : ""),
              .remedy = in_use_remedy};
  error.facts["holders"] = image.holders;
  return std::unexpected(std::move(error));
}

std::unexpected<Error> failed_import(const std::string& source, Error error) {
  const bool is_about_the_source = error.code != Errc::store_full && error.code != Errc::cancelled;
  error.message = "import of " + in_quotes(source) + ": " + error.message +
                  (is_about_the_source ? "" : "; nothing was left behind");
  return std::unexpected(std::move(error));
}

}  // namespace

Result<ImageStore> ImageStore::open(const std::string& folder) {
  BERTH_TRY(StoreFolder things, StoreFolder::open(folder, "by-digest"));
  std::string names = folder + "/names";
  BERTH_DO(make_directories(names, 0700));
  return ImageStore{std::move(things), std::move(names)};
}

std::string ImageStore::name_file(const ImageName& name) const {
  std::string file = name.str();
  std::ranges::replace(file, '/', '+');
  return names_ + "/" + file;
}

Result<Image> ImageStore::import(const std::string& source, const std::string& name,
                                 const ImportOptions& options, const ProgressSink& progress) const {
  BERTH_TRY(const ImageName parsed, parse_image_name(name));
  if (parsed.name == host_name) {
    return fail(Errc::validation_failed, "'host' is the image that is built in",
                "choose another name");
  }
  BERTH_DO(folder_.sweep());
  Meter meter{progress, options.stop};
  BERTH_TRY(Draft draft, folder_.make_draft());
  Result<ImageRecord> record = make(draft, source, options, meter);
  if (!record) return failed_import(source, std::move(record).error());
  if (Result<> done = publish(std::move(draft), *record, parsed, meter); !done) {
    return failed_import(source, std::move(done).error());
  }
  return read(thing_of(record->digest));
}

// Everything except for publishing and naming.
Result<ImageRecord> ImageStore::make(const Draft& draft, const std::string& source,
                                     const ImportOptions& options, Meter& meter) const {
  const int folder = draft.folder.get();
  BERTH_TRY(Unpacked unpacked, unpack_source(source, folder, options, meter));
  BERTH_DO(remove_tree(draft.path.get() + "/layout"));
  const Fd root{files::open_beneath(folder, "root", O_RDONLY | O_DIRECTORY, files::Links::none)};
  if (!root) return files::store_failure("open", "root", errno);
  meter.begin(Phase::hashing);
  BERTH_TRY(const files::TreeDigest tree, files::digest_of_tree(root.get(), options.limits, meter));
  meter.begin(Phase::saving);
  ImageRecord record{.digest = image_digest(tree.digest, unpacked.config),
                     .tree_digest = tree.digest,
                     .kind = unpacked.kind,
                     .source_digest = std::move(unpacked.source_digest),
                     .architecture = std::move(unpacked.architecture),
                     .bytes = tree.bytes,
                     .entries = tree.entries,
                     .set_id_bits_removed = unpacked.tally.set_id_bits_removed,
                     .devices_skipped = unpacked.tally.devices_skipped,
                     .created_at = SystemClock{}.now(),
                     .config = std::move(unpacked.config)};
  const Fd file{::openat(folder, "image.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!file) return files::store_failure("make file", "image.json", errno);
  BERTH_DO(files::write_at(file.get(), encode_text(record) + "\n", 0, "image.json"));
  BERTH_DO(folder_.make_durable(draft));
  return record;
}

// The same tree with the same config is stored once, whatever its source.
Result<> ImageStore::publish(Draft draft, const ImageRecord& record, const ImageName& name,
                             Meter& meter) const {
  const std::string thing = thing_of(record.digest);
  // Before the lock, which must be held only briefly.
  BERTH_TRY(const bool damaged, is_damaged(record.digest, meter));
  Draft going;  // deleted after the lock is released
  BERTH_TRY(const Fd held, folder_.lock());
  std::vector<std::string> sources = sources_of(record);
  if (damaged && folder_.contains(thing)) {
    if (const Result<Image> there = read(thing)) {
      std::ranges::copy(sources_of(*there), std::back_inserter(sources));
    }
    BERTH_TRY(going, retire_damaged(record.digest));
  }
  const bool fresh = !folder_.contains(thing);
  fault_point("image.unpacked");
  if (fresh) BERTH_DO(folder_.publish(std::move(draft), thing));
  BERTH_DO(add_sources(record.digest, sources));
  fault_point("image.published");
  Result<> named = replace_file(name_file(name), record.digest + "\n", 0600);
  if (!named && fresh && !damaged) {
    BERTH_TRY(going, folder_.retire(thing));
  }
  return named;
}

// Whether the content stored under the digest no longer matches it.
Result<bool> ImageStore::is_damaged(const std::string& digest, Meter& meter) const {
  if (!folder_.contains(thing_of(digest))) return false;
  const Result<Image> there = read(thing_of(digest));
  if (!there || there->digest != digest) return true;
  const Result<> verified = verify_tree(*there, meter);
  if (verified) return false;
  switch (verified.error().code) {
    case Errc::image_digest_mismatch:
    case Errc::image_invalid:
    case Errc::image_not_found: return true;
    default: return std::unexpected(verified.error());
  }
}

// Requires the lock.
Result<Draft> ImageStore::retire_damaged(const std::string& digest) const {
  const std::vector<std::string> holders = folder_.holders(thing_of(digest));
  if (holders.empty()) return folder_.retire(thing_of(digest));
  Error error{.code = Errc::image_in_use,
              .message = digest + " is there already, but was changed since, and is in use by " +
                         describe_holder(holders.front()),
              .remedy = "release its leases and remove its templates, then import it again"};
  error.facts["holders"] = holders;
  return std::unexpected(std::move(error));
}

// Requires the lock.
Result<> ImageStore::add_sources(const std::string& digest,
                                 const std::vector<std::string>& sources) const {
  BERTH_TRY(const Image there, read(thing_of(digest)));
  ImageRecord record{static_cast<const ImageRecord&>(there)};
  std::vector<std::string> more = record.other_source_digests.value_or(std::vector<std::string>{});
  const std::size_t known = more.size();
  for (const std::string& source : sources) {
    const bool is_known = std::ranges::find(more, source) != more.end();
    if (!is_known && source != record.source_digest) more.push_back(source);
  }
  if (more.size() == known) return {};
  if (std::ssize(more) > other_sources_max)
    more.erase(more.begin(), more.end() - other_sources_max);
  record.other_source_digests = std::move(more);
  return replace_file(folder_.place_of(thing_of(digest)) + "/image.json",
                      encode_text(record) + "\n", 0600);
}

Result<std::vector<std::string>> ImageStore::names_for(std::string_view digest) const {
  BERTH_TRY(const std::vector<std::string> files, names_in(names_));
  std::vector<std::string> names;
  for (const std::string& file : files) {
    if (file.contains(name_draft_mark)) continue;
    const auto text = read_file(names_ + "/" + file, image_name_bytes_max);
    if (!text || *text != std::string{digest} + "\n") continue;
    std::string name = file;
    std::ranges::replace(name, '+', '/');
    names.push_back(std::move(name));
  }
  return names;
}

Result<Image> ImageStore::read(const std::string& thing) const {
  const auto text = read_file(folder_.place_of(thing) + "/image.json", record_bytes_max);
  if (!text) return image_not_found_error(thing);
  Result<ImageRecord> record = decode_text<ImageRecord>(*text, UnknownKeys::ignore);
  if (!record) {
    return fail(Errc::image_invalid,
                folder_.place_of(thing) + "/image.json: " + record.error().message,
                "import it again, or let 'berth image gc' remove it");
  }
  Image image{*std::move(record), {}, folder_.holders(thing)};
  BERTH_TRY(image.names, names_for(image.digest));
  return image;
}

Result<Image> ImageStore::find(std::string_view named) const {
  if (named == host_name) return host_image();
  if (const auto name = parse_image_name(named)) {
    if (const auto digest = read_file(name_file(*name), image_name_bytes_max)) {
      return read(thing_of(std::string_view{*digest}.substr(0, digest->find('\n'))));
    }
  }
  return find_by_digest(named);
}

Result<Image> ImageStore::find_by_digest(std::string_view named) const {
  BERTH_TRY(const std::vector<Image> images, list());
  const Image* found = nullptr;
  for (const Image& image : images) {
    if (image.kind == ImageKind::host || !is_digest_of(image, named)) continue;
    if (found != nullptr) {
      return fail(Errc::conflict, in_quotes(named) + " is the start of several digests",
                  "write more of it");
    }
    found = &image;
  }
  if (found == nullptr) return image_not_found_error(named);
  return *found;
}

Result<std::vector<Image>> ImageStore::list() const {
  BERTH_TRY(const std::vector<std::string> things, folder_.names());
  std::vector<Image> images{host_image()};
  for (const std::string& thing : things) {
    Result<Image> image = read(thing);
    if (image) images.push_back(*std::move(image));
    // An image that is removed meanwhile is not an error, and an unreadable one must not hide
    // others.
  }
  std::ranges::sort(images, [](const Image& left, const Image& right) {
    return std::pair{left.names.empty(), left.names} < std::pair{right.names.empty(), right.names};
  });
  return images;
}

// Takes the lock. The tree itself is deleted with the draft, after the lock is released.
Result<Removed> ImageStore::remove(std::string_view named, IfNamed if_named) const {
  if (named == host_name) {
    return fail(Errc::validation_failed, "'host' is built in and cannot be removed");
  }
  Draft going;
  BERTH_TRY(const Fd held, folder_.lock());
  BERTH_TRY(const Image image, find(named));
  Removed removed;
  const auto name = parse_image_name(named);
  const bool by_name = name && std::ranges::find(image.names, name->str()) != image.names.end();
  removed.names = by_name ? std::vector{name->str()} : image.names;
  if (if_named == IfNamed::refuse) BERTH_DO(check_environments(image, removed.names));
  if (removed.names.size() == image.names.size()) {
    if (!image.holders.empty()) return in_use(image);
    BERTH_TRY(going, folder_.retire(thing_of(image.digest)));
    fault_point("image.retired");
    removed.digests = {image.digest};
    removed.bytes = image.bytes;
  }
  for (const std::string& each : removed.names) {
    BERTH_TRY(const ImageName parsed, parse_image_name(each));
    if (::unlink(name_file(parsed).c_str()) != 0)
      return files::store_failure("remove", each, errno);
  }
  return removed;
}

// Requires the lock. A crash between the steps of `remove` leaves dangling names, and a crash while
// naming leaves a partly written name.
Result<> ImageStore::drop_dangling_names() const {
  BERTH_TRY(const std::vector<std::string> files, names_in(names_));
  for (const std::string& file : files) {
    const std::string path = names_ + "/" + file;
    const auto digest = read_file(path, image_name_bytes_max);
    const bool leads = !file.contains(name_draft_mark) && digest &&
                       folder_.contains(thing_of(digest->substr(0, digest->find('\n'))));
    if (!leads && ::unlink(path.c_str()) != 0) return files::store_failure("remove", file, errno);
  }
  return {};
}

Result<Removed> ImageStore::gc(const Spared& spared) const {
  BERTH_TRY(const std::vector<EnvironmentImage> users, environments());
  const auto is_spared = [&](const Image& image) {
    const bool is_young = spared.made_after && image.created_at > spared.made_after;
    const auto starts_from = [&](const EnvironmentImage& one) {
      return is_digest_of(image, one.image);
    };
    return is_young || std::ranges::any_of(users, starts_from);
  };
  Removed removed;
  BERTH_TRY(removed.drafts, folder_.sweep());
  std::vector<Draft> going;
  BERTH_TRY(const Fd held, folder_.lock());
  BERTH_TRY(const std::vector<std::string> things, folder_.names());
  for (const std::string& thing : things) {
    // An unreadable image is of no use, whatever its name.
    const Result<Image> image = read(thing);
    if ((image && !image->names.empty()) || !folder_.holders(thing).empty()) continue;
    if (image && is_spared(*image)) continue;
    Result<Draft> retired = folder_.retire(thing);
    if (!retired && retired.error().code == Errc::image_in_use) continue;
    if (!retired) return std::unexpected(std::move(retired).error());
    going.push_back(*std::move(retired));
    removed.digests.push_back(digest_of(thing));
    removed.bytes += image ? image->bytes : 0;
  }
  BERTH_DO(drop_dangling_names());
  return removed;
}

Result<> ImageStore::verify(const Image& image, const ProgressSink& progress) const {
  if (image.kind == ImageKind::host) return {};
  Meter meter{progress};
  return verify_tree(image, meter);
}

Result<> ImageStore::verify_tree(const Image& image, Meter& meter) const {
  const std::string root = root_of(image);
  const Fd tree{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!tree) return image_not_found_error(image.digest);
  meter.begin(Phase::hashing);
  BERTH_TRY(const files::TreeDigest found,
            files::digest_of_tree(tree.get(), image_limits(), meter));
  if (found.digest == image.tree_digest &&
      image_digest(found.digest, image.config) == image.digest) {
    return {};
  }
  return fail(Errc::image_digest_mismatch,
              image.digest + ": its tree was " + image.tree_digest + " and is " + found.digest,
              "import it again: what was changed is replaced");
}

Result<> ImageStore::hold(const std::string& digest, const std::string& holder) const {
  if (digest == host_name) return {};
  BERTH_TRY(const Fd held, folder_.lock());
  if (!is_digest(digest) || !folder_.contains(thing_of(digest)))
    return image_not_found_error(digest);
  return folder_.hold(thing_of(digest), holder);
}

Result<> ImageStore::release(const std::string& digest, const std::string& holder) const {
  if (digest == host_name) return {};
  if (!is_digest(digest)) return image_not_found_error(digest);
  return folder_.release(thing_of(digest), holder);
}

Result<Fd> ImageStore::pin(const std::string& digest) const {
  if (!is_digest(digest)) return image_not_found_error(digest);
  BERTH_TRY(const Fd held, folder_.lock());
  if (!folder_.contains(thing_of(digest))) return image_not_found_error(digest);
  return folder_.pin(thing_of(digest));
}

Result<> ImageStore::note_environments(const std::vector<EnvironmentImage>& all) const {
  BERTH_TRY(const Fd held, folder_.lock());
  return replace_file(folder_.path() + environments_file, encode_text(all) + "\n", 0600);
}

// The list does not exist if no server has run yet.
Result<std::vector<EnvironmentImage>> ImageStore::environments() const {
  const std::string file = folder_.path() + environments_file;
  if (::access(file.c_str(), F_OK) != 0 && errno == ENOENT) return std::vector<EnvironmentImage>{};
  BERTH_TRY(const std::string text, read_file(file, environments_bytes_max));
  Result<std::vector<EnvironmentImage>> all =
      decode_text<std::vector<EnvironmentImage>>(text, UnknownKeys::ignore);
  if (all) return all;
  return fail(Errc::io_failed, file + ": " + all.error().message,
              "start the server, which writes it anew");
}

// Fails if environments would not find the image any more without these names. Removing the last
// name removes the image.
Result<> ImageStore::check_environments(const Image& image,
                                        const std::vector<std::string>& names) const {
  const bool goes = names.size() == image.names.size();
  BERTH_TRY(const std::vector<EnvironmentImage> users, environments());
  std::vector<std::string> without;
  for (const EnvironmentImage& one : users) {
    const auto name = parse_image_name(one.image);
    const bool loses_name = name && std::ranges::find(names, name->str()) != names.end();
    if (loses_name || (goes && is_digest_of(image, one.image))) {
      without.push_back(one.name + " (" + one.id + ")");
    }
  }
  if (without.empty()) return {};
  Error error{
      .code = Errc::image_in_use,
      .message = image.digest + " is what the environment " + without.front() + " starts from",
      .remedy =
          "give the environment another image or remove it, or use --force: its runs "
          "fail then"};
  error.facts["environments"] = std::move(without);
  return std::unexpected(std::move(error));
}

std::string ImageStore::root_of(const Image& image) const {
  if (image.kind == ImageKind::host) return {};
  return folder_.place_of(thing_of(image.digest)) + "/root";
}

}  // namespace berth::images
