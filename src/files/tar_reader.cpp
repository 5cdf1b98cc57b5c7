#include "files/tar_reader.hpp"

#include "base/text.hpp"
#include "files/path.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <cerrno>
#include <limits>
#include <span>

namespace berth::files {
namespace {

constexpr std::size_t tar_block_bytes = 512;
constexpr std::size_t said_bytes_max = 200;
// A tar ends with two blocks of zeros; the last content block is padded with zeros.
constexpr std::array<char, 3 * tar_block_bytes> tar_end{};

// By name, because "all" includes filters that start a program to decompress.
constexpr std::array image_filters{
    &::archive_read_support_filter_gzip,    &::archive_read_support_filter_zstd,
    &::archive_read_support_filter_bzip2,   &::archive_read_support_filter_xz,
    &::archive_read_support_filter_lzma,    &::archive_read_support_filter_lz4,
    &::archive_read_support_filter_compress};
constexpr std::size_t workspace_filters = 2;  // the first ones

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

Entry archived(::archive_entry* entry) {
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

// libarchive passes on only the text of an error, so the source's own is kept.
std::unexpected<Error> archive_failure(const ArchiveFeed& feed, ::archive* archive,
                                       const TarOptions& options) {
  if (feed.error) return std::unexpected(*feed.error);
  const std::string said =
      as_utf8(clipped(text_of(::archive_error_string(archive)), said_bytes_max));
  std::string message = options.name + ": is not a complete tar: " + said;
  if (options.rules == Rules::workspace) {
    return fail(Errc::unprocessable, std::move(message),
                "send a tar, plain or compressed with gzip or zstd");
  }
  return fail(Errc::image_invalid, std::move(message),
              "use a tar, plain or compressed with gzip, bzip2, xz, zstd or lz4; fetch it again if "
              "it was cut off or damaged on the way");
}

std::ptrdiff_t feed_archive(::archive* archive, void* context, const void** bytes) {
  auto& feed = *static_cast<ArchiveFeed*>(context);
  Result<std::string_view> piece = feed.source();
  if (!piece) {
    ::archive_set_error(archive, EIO, "the source failed");
    feed.error = std::move(piece).error();
    return -1;
  }
  feed.bytes += piece->size();
  *bytes = piece->data();
  return static_cast<std::ptrdiff_t>(piece->size());
}

// A warning means that a name is not valid in our locale: names are bytes here.
bool is_fine(int status) {
  return status == ARCHIVE_OK || status == ARCHIVE_WARN;
}

std::unexpected<Error> no_memory(const TarOptions& options) {
  return fail(Errc::io_failed, options.name + ": no memory for an archive reader");
}

}  // namespace

void ArchiveKind::dispose(Raw archive) noexcept {
  ::archive_read_free(archive);
}

Result<Content> Content::open(const ByteSource& source, const TarOptions& options) {
  Owned<ArchiveKind> archive{::archive_read_new()};
  if (!archive) return no_memory(options);
  ::archive_read_support_format_raw(archive.get());
  ::archive_read_support_format_empty(archive.get());
  const bool is_workspace = options.rules == Rules::workspace;
  const std::size_t count = is_workspace ? workspace_filters : image_filters.size();
  for (auto* const support : std::span{image_filters}.first(count)) {
    // A warning means that this one would start a program as well.
    if (support(archive.get()) == ARCHIVE_OK) continue;
    return fail(Errc::io_failed, "libarchive was built without a compression that is needed");
  }
  auto feed = std::make_unique<ArchiveFeed>([&source] { return source(); });
  Content content{std::move(feed), std::move(archive), options};
  BERTH_DO(content.begin());
  return content;
}

Result<> Content::begin() {
  ::archive* raw = archive_.get();
  if (::archive_read_open(raw, feed_.get(), nullptr, &feed_archive, nullptr) != ARCHIVE_OK) {
    return archive_failure(*feed_, raw, options_);
  }
  ::archive_entry* whole = nullptr;
  const int status = ::archive_read_next_header(raw, &whole);
  ended_ = status == ARCHIVE_EOF;
  if (!ended_ && !is_fine(status)) return archive_failure(*feed_, raw, options_);
  // The first "filter" is the raw input.
  if (::archive_filter_count(raw) > 1 && options_.rules != Rules::workspace) hash_.emplace();
  return {};
}

Result<std::string_view> Content::next() {
  const void* bytes = nullptr;
  std::size_t size = 0;
  while (!ended_ && size == 0) {
    std::int64_t offset = 0;
    const int status = ::archive_read_data_block(archive_.get(), &bytes, &size, &offset);
    ended_ = status == ARCHIVE_EOF;
    if (!ended_ && !is_fine(status)) return archive_failure(*feed_, archive_.get(), options_);
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
    if (bytes.empty()) break;
  }
  while (true) {
    BERTH_TRY(const std::string_view bytes, feed_->source());
    if (bytes.empty()) return {};
    feed_->bytes += bytes.size();
    if (feed_->bytes > options_.limits.bytes_max + options_.limits.growth_free_bytes) {
      return fail(Errc::body_too_large,
                  options_.name + ": more is sent after its end than it may have");
    }
  }
}

std::optional<std::string> Content::digest() {
  return hash_ ? std::optional{hash_->digest()} : std::nullopt;
}

// A few bytes may decompress to more than any disk can hold, even between the files.
Result<> Content::check_growth() const {
  const Limits& limits = options_.limits;
  const auto grows = [this](const std::string& to) {
    return fail(refusal_of(options_.rules), options_.name + ": decompresses to more than " + to);
  };
  if (bytes_ > limits.bytes_max + limits.growth_free_bytes) {
    return grows(std::to_string(limits.bytes_max) + " bytes");
  }
  if (bytes_ > limits.growth_free_bytes && bytes_ / limits.growth_ratio_max > feed_->bytes) {
    return grows(std::to_string(limits.growth_ratio_max) + " times its size");
  }
  return {};
}

Result<TarReader> TarReader::open(Content& content) {
  const TarOptions& options = content.options();
  Owned<ArchiveKind> archive{::archive_read_new()};
  if (!archive) return no_memory(options);
  ::archive_read_support_format_tar(archive.get());
  auto feed = std::make_unique<ArchiveFeed>();
  feed->source = [&content, &end_added = feed->end_added]() -> Result<std::string_view> {
    BERTH_TRY(const std::string_view bytes, content.next());
    const bool is_layer = content.options().form == ArchiveForm::layer;
    if (!bytes.empty() || !is_layer || end_added || content.bytes() == 0) return bytes;
    end_added = true;
    const std::size_t over = content.bytes() % tar_block_bytes;
    const std::size_t missing = 2 * tar_block_bytes + (tar_block_bytes - over) % tar_block_bytes;
    return std::string_view{tar_end.data(), missing};
  };
  ::archive* raw = archive.get();
  if (::archive_read_open(raw, feed.get(), nullptr, &feed_archive, nullptr) != ARCHIVE_OK) {
    return archive_failure(*feed, raw, options);
  }
  return TarReader{options, std::move(feed), std::move(archive)};
}

Result<std::optional<Entry>> TarReader::next() {
  ::archive_entry* entry = nullptr;
  const int status = ::archive_read_next_header(archive_.get(), &entry);
  if (status == ARCHIVE_EOF) return std::nullopt;
  if (!is_fine(status)) return archive_failure(*feed_, archive_.get(), options_);
  return archived(entry);
}

Result<> TarReader::content(const Entry& entry, const ContentSink& sink) {
  const auto refused = [&](std::string_view rule) {
    return refuse(entry.path, rule, {}, refusal_of(options_.rules));
  };
  while (true) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    std::int64_t offset = 0;
    const int status = ::archive_read_data_block(archive_.get(), &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return {};
    if (!is_fine(status)) return archive_failure(*feed_, archive_.get(), options_);
    // The zeros that were appended as the tar's end are not the content of a truncated file.
    if (feed_->end_added) return refused("is cut off");
    const auto at = static_cast<std::uint64_t>(offset);
    if (offset < 0 || at > entry.bytes || size > entry.bytes - at) {
      return refused("holds more than it says");
    }
    BERTH_DO(sink(at, {static_cast<const char*>(bytes), size}));
  }
}

}  // namespace berth::files
