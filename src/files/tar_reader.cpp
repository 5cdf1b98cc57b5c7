#include "images/archive.hpp"

#include "base/text.hpp"
#include "images/disk.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

namespace berth::images {
namespace {

constexpr std::size_t read_bytes = 256 << 10;
constexpr std::size_t block_bytes = 512;
// A tar ends with two blocks of zeros; the last content block is padded with zeros.
constexpr std::array<char, 3 * block_bytes> tar_end{};
constexpr std::string_view whiteout_prefix = ".wh.";
constexpr std::string_view opaque_name = ".wh..wh..opq";
constexpr std::string_view aufs_prefix = ".wh..wh.";

std::string text_of(const char* text) {
  return text != nullptr ? text : "";
}

EntryType archived_type(::archive_entry* entry) {
  if (::archive_entry_hardlink(entry) != nullptr) return EntryType::hard_link;
  switch (::archive_entry_filetype(entry)) {
    case AE_IFREG: return EntryType::file;
    case AE_IFDIR: return EntryType::directory;
    case AE_IFLNK: return EntryType::symbolic_link;
    case AE_IFIFO: return EntryType::pipe;
    default: return EntryType::device;
  }
}

// Ids and sizes are signed 64-bit values; one that does not fit becomes a value that the writer
// rejects. The writer's error names the id, so a valid Linux id is kept as it is.
std::uint32_t id_of(std::int64_t id) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  return id >= 0 && id <= most ? static_cast<std::uint32_t>(id) : most;
}

Entry described(::archive_entry* entry) {
  const std::int64_t size = ::archive_entry_size(entry);
  Entry out{.path = text_of(::archive_entry_pathname(entry)),
            .type = archived_type(entry),
            .mode = ::archive_entry_perm(entry),
            .uid = id_of(::archive_entry_uid(entry)),
            .gid = id_of(::archive_entry_gid(entry)),
            .modified = {.tv_sec = ::archive_entry_mtime(entry),
                         .tv_nsec = ::archive_entry_mtime_nsec(entry)},
            .bytes = size < 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(size)};
  if (out.modified.tv_nsec < 0 || out.modified.tv_nsec >= 1'000'000'000) out.modified.tv_nsec = 0;
  if (out.type == EntryType::hard_link) out.target = text_of(::archive_entry_hardlink(entry));
  if (out.type == EntryType::symbolic_link) out.target = text_of(::archive_entry_symlink(entry));
  return out;
}

Result<> hide(const std::string& path, std::string_view name, TreeWriter& into) {
  const std::string folder = path.substr(0, path.size() - name.size());
  if (name == opaque_name) return into.hide_content(folder);
  if (name.starts_with(aufs_prefix)) return {};  // private files of a storage driver
  name.remove_prefix(whiteout_prefix.size());
  if (name.empty() || name == "." || name == "..") {
    return refuse_entry(path, "is a whiteout that names nothing");
  }
  return into.hide(folder + std::string{name});
}

Result<> put(ArchiveReader& reader, const Entry& entry, TreeWriter& into, Meter& meter) {
  if (entry.type != EntryType::file) return into.put(entry);
  BERTH_TRY(const Fd file, into.begin_file(entry));
  BERTH_DO(reader.copy_content(entry, file.get(), meter));
  return into.end_file(file, entry);
}

std::unexpected<Error> no_tar(const std::string& name, ::archive* archive) {
  const std::string said = text_of(::archive_error_string(archive));
  return fail(
      Errc::image_invalid, name + ": is not a complete tar: " + as_utf8(said),
      "use a tar, plain or compressed with gzip, bzip2, xz, zstd or lz4; fetch it again if it was "
      "cut off or damaged on the way");
}

// Gets the next bytes for libarchive. Keeps the error, because libarchive passes on only its text.
template <class Source, class Feed>
std::ptrdiff_t hand_over(::archive* archive, Source& source, Feed& feed, const void** bytes) {
  Result<std::string_view> next = source.next();
  if (!next) {
    ::archive_set_error(archive, EIO, "%s", next.error().message.c_str());
    feed.error = std::move(next).error();
    return -1;
  }
  *bytes = next->data();
  return static_cast<std::ptrdiff_t>(next->size());
}

}  // namespace

Blob::Blob(int fd, std::string name, std::uint64_t bytes_max, int stop)
    : fd_(fd), stop_(stop), name_(std::move(name)), bytes_max_(bytes_max), buffer_(read_bytes) {}

// A pipe may deliver nothing for any length of time.
Result<> Blob::wait() const {
  if (stop_ < 0) return {};
  std::array<pollfd, 2> ends{
      {{.fd = fd_, .events = POLLIN, .revents = 0}, {.fd = stop_, .events = POLLIN, .revents = 0}}};
  while (::poll(ends.data(), ends.size(), -1) < 0) {
    if (errno != EINTR) return disk_failure("wait for", name_, errno);
  }
  return ends[1].revents == 0 ? Result<>{} : interrupted();
}

Result<std::string_view> Blob::next() {
  BERTH_DO(wait());
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data(), buffer_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return disk_failure("read", name_, errno);
  const std::string_view bytes{buffer_.data(), static_cast<std::size_t>(got)};
  bytes_ += bytes.size();
  if (bytes_ > bytes_max_) {
    return fail(Errc::image_invalid,
                name_ + ": is larger than " + std::to_string(bytes_max_) + " bytes");
  }
  hash_.add(bytes);
  return bytes;
}

Result<> Blob::drain() {
  while (true) {
    BERTH_TRY(const std::string_view bytes, next());
    if (bytes.empty()) return {};
  }
}

void ArchiveKind::dispose(Raw archive) noexcept {
  ::archive_read_free(archive);
}

std::ptrdiff_t Content::feed(::archive* archive, void* context, const void** bytes) {
  return hand_over(archive, static_cast<Feed*>(context)->blob, *static_cast<Feed*>(context), bytes);
}

Result<Content> Content::open(Blob& blob, const Limits& limits) {
  Owned<ArchiveKind> archive{::archive_read_new()};
  if (!archive) return fail(Errc::io_failed, blob.name() + ": no memory for an archive reader");
  ::archive* raw = archive.get();
  ::archive_read_support_format_raw(raw);
  ::archive_read_support_format_empty(raw);
  // Each by name: "all" includes filters that start a program to decompress.
  for (auto* const support :
       {::archive_read_support_filter_gzip, ::archive_read_support_filter_bzip2,
        ::archive_read_support_filter_xz, ::archive_read_support_filter_lzma,
        ::archive_read_support_filter_zstd, ::archive_read_support_filter_lz4,
        ::archive_read_support_filter_compress}) {
    support(raw);
  }
  Content content{std::make_unique<Feed>(blob, std::nullopt), std::move(archive), limits};
  BERTH_DO(content.begin());
  return content;
}

Result<> Content::begin() {
  ::archive* raw = archive_.get();
  if (::archive_read_open(raw, feed_.get(), nullptr, &Content::feed, nullptr) != ARCHIVE_OK) {
    return failure();
  }
  ::archive_entry* whole = nullptr;
  const int status = ::archive_read_next_header(raw, &whole);
  ended_ = status == ARCHIVE_EOF;
  if (!ended_ && status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
  // The first "filter" is the raw input.
  if (::archive_filter_count(raw) > 1) hash_.emplace();
  return {};
}

Result<std::string_view> Content::next() {
  const void* bytes = nullptr;
  std::size_t size = 0;
  while (!ended_ && size == 0) {
    std::int64_t offset = 0;
    const int status = ::archive_read_data_block(archive_.get(), &bytes, &size, &offset);
    ended_ = status == ARCHIVE_EOF;
    if (!ended_ && status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
  }
  if (size == 0) return std::string_view{};
  const std::string_view text{static_cast<const char*>(bytes), size};
  bytes_ += size;
  if (hash_) hash_->add(text);
  BERTH_DO(check_growth());
  return text;
}

Result<> Content::drain() {
  while (true) {
    BERTH_TRY(const std::string_view bytes, next());
    if (bytes.empty()) return {};
  }
}

std::optional<std::string> Content::digest() {
  return hash_ ? std::optional{hash_->digest()} : std::nullopt;
}

std::unexpected<Error> Content::failure() const {
  if (feed_->error) return std::unexpected(*feed_->error);
  return no_tar(name(), archive_.get());
}

// A few bytes may decompress to more than any disk can hold, even between the files.
Result<> Content::check_growth() const {
  if (bytes_ > limits_.bytes_max + limits_.growth_free_bytes) {
    return fail(Errc::image_invalid, name() + ": decompresses to more than " +
                                         std::to_string(limits_.bytes_max) + " bytes");
  }
  if (bytes_ > limits_.growth_free_bytes && bytes_ / limits_.growth_max > feed_->blob.bytes()) {
    return fail(Errc::image_invalid, name() + ": decompresses to more than " +
                                         std::to_string(limits_.growth_max) + " times its size");
  }
  return {};
}

std::ptrdiff_t ArchiveReader::feed(::archive* archive, void* context, const void** bytes) {
  Feed& feed = *static_cast<Feed*>(context);
  const std::ptrdiff_t got = hand_over(archive, feed.content, feed, bytes);
  const std::uint64_t size = feed.content.bytes();
  if (got != 0 || feed.form == ArchiveForm::plain || feed.end_added || size == 0) return got;
  feed.end_added = true;
  *bytes = tar_end.data();
  return static_cast<std::ptrdiff_t>(2 * block_bytes +
                                     (block_bytes - size % block_bytes) % block_bytes);
}

Result<ArchiveReader> ArchiveReader::open(Content& content, ArchiveForm form) {
  Owned<ArchiveKind> archive{::archive_read_new()};
  if (!archive) return fail(Errc::io_failed, content.name() + ": no memory for an archive reader");
  ::archive* raw = archive.get();
  ::archive_read_support_format_tar(raw);
  ArchiveReader reader{std::make_unique<Feed>(content, form), std::move(archive)};
  if (::archive_read_open(raw, reader.feed_.get(), nullptr, &ArchiveReader::feed, nullptr) !=
      ARCHIVE_OK) {
    return reader.failure();
  }
  return reader;
}

std::unexpected<Error> ArchiveReader::failure() const {
  if (feed_->error) return std::unexpected(*feed_->error);
  return no_tar(feed_->content.name(), archive_.get());
}

Result<std::optional<Entry>> ArchiveReader::next() {
  ::archive_entry* entry = nullptr;
  const int status = ::archive_read_next_header(archive_.get(), &entry);
  if (status == ARCHIVE_EOF) return std::nullopt;
  // A warning means that a name is not valid in our locale: names are bytes here.
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
  return described(entry);
}

Result<> ArchiveReader::copy_content(const Entry& entry, int into, Meter& meter) {
  while (true) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    std::int64_t offset = 0;
    const int status = ::archive_read_data_block(archive_.get(), &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
    // The zeros that were appended as the tar's end are not the content of a truncated file.
    if (feed_->end_added) return refuse_entry(entry.path, "is cut off");
    const auto at = static_cast<std::uint64_t>(offset);
    if (offset < 0 || at > entry.bytes || size > entry.bytes - at) {
      return refuse_entry(entry.path, "holds more than it says");
    }
    BERTH_DO(write_at(into, {static_cast<const char*>(bytes), size}, at, entry.path));
    meter.add_bytes(size);
  }
}

Result<Digests> unpack(Blob& blob, ArchiveForm form, TreeWriter& into, Meter& meter) {
  BERTH_TRY(Content content, Content::open(blob, into.limits()));
  BERTH_TRY(ArchiveReader reader, ArchiveReader::open(content, form));
  into.begin_layer();
  std::uint64_t entries = 0;
  while (true) {
    BERTH_TRY(const std::optional<Entry> entry, reader.next());
    if (!entry) break;
    if (++entries > into.limits().entries_max) {
      return refuse_entry(entry->path, "is one more than " +
                                           std::to_string(into.limits().entries_max) + " entries");
    }
    const std::string_view name = std::string_view{entry->path}.substr(entry->path.rfind('/') + 1);
    if (form == ArchiveForm::layer && name.starts_with(whiteout_prefix)) {
      BERTH_DO(hide(entry->path, name, into));
    } else {
      BERTH_DO(put(reader, *entry, into, meter));
    }
  }
  BERTH_DO(content.drain());
  BERTH_DO(blob.drain());
  Digests digests{.stored = blob.digest(), .content = {}};
  digests.content = content.digest().value_or(digests.stored);
  return digests;
}

Result<std::string> content_digest(Blob& blob, const Limits& limits) {
  BERTH_TRY(Content content, Content::open(blob, limits));
  BERTH_DO(content.drain());
  BERTH_DO(blob.drain());
  std::string stored = blob.digest();
  return content.digest().value_or(std::move(stored));
}

}  // namespace berth::images
