#include "workspaces/tar_reader.hpp"

#include "base/text.hpp"
#include "workspaces/path.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>

namespace berth::workspaces {
namespace {

// Padding and headers, which are not content: a block in front of each entry, and as much again for
// its long names.
constexpr std::uint64_t overhead_per_entry = 4096;

std::string text_or_empty(const char* text) {
  return text != nullptr ? text : "";
}

TarEntry::Type tar_type(::archive_entry* entry) {
  if (::archive_entry_hardlink(entry) != nullptr) return TarEntry::Type::hard_link;
  switch (::archive_entry_filetype(entry)) {
    case AE_IFREG: return TarEntry::Type::file;
    case AE_IFDIR: return TarEntry::Type::directory;
    case AE_IFLNK: return TarEntry::Type::symbolic_link;
    default: return TarEntry::Type::other;
  }
}

TarEntry described(::archive_entry* entry) {
  const std::int64_t size = ::archive_entry_size(entry);
  TarEntry out{.path = text_or_empty(::archive_entry_pathname(entry)),
               .type = tar_type(entry),
               .mode = ::archive_entry_perm(entry),
               .modified = {.tv_sec = ::archive_entry_mtime(entry),
                            .tv_nsec = ::archive_entry_mtime_nsec(entry)},
               .bytes = size < 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(size)};
  if (out.modified.tv_nsec < 0 || out.modified.tv_nsec >= 1'000'000'000) out.modified.tv_nsec = 0;
  if (out.type == TarEntry::Type::hard_link) {
    out.target = text_or_empty(::archive_entry_hardlink(entry));
  }
  if (out.type == TarEntry::Type::symbolic_link) {
    out.target = text_or_empty(::archive_entry_symlink(entry));
  }
  return out;
}

}  // namespace

void TarReader::ArchiveKind::dispose(Raw archive) noexcept {
  ::archive_read_free(archive);
}

std::ptrdiff_t TarReader::take(::archive* archive, void* context, const void** bytes) {
  auto& feed = *static_cast<Feed*>(context);
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

Result<TarReader> TarReader::open(const ByteSource& source, const Limits& limits) {
  Owned<ArchiveKind> archive{::archive_read_new()};
  if (!archive) return fail(Errc::io_failed, "no memory for an archive reader");
  ::archive* raw = archive.get();
  ::archive_read_support_format_tar(raw);
  // By name, because "all" includes filters that start a program to decompress. A warning here
  // means that this one would too.
  for (auto* const support :
       {&::archive_read_support_filter_gzip, &::archive_read_support_filter_zstd}) {
    if (support(raw) != ARCHIVE_OK) {
      return fail(Errc::io_failed, "libarchive was built without gzip or zstd");
    }
  }
  TarReader reader{std::make_unique<Feed>(source), std::move(archive), limits};
  if (::archive_read_open(raw, reader.feed_.get(), nullptr, &TarReader::take, nullptr) !=
      ARCHIVE_OK) {
    return reader.failure();
  }
  return reader;
}

std::unexpected<Error> TarReader::failure() const {
  if (feed_->error) return std::unexpected(*feed_->error);
  const std::string said = text_or_empty(::archive_error_string(archive_.get()));
  return fail(Errc::unprocessable, "archive: is not a complete tar: " + as_utf8(clipped(said, 200)),
              "send a tar, plain or compressed with gzip or zstd");
}

// A few bytes may decompress to more than any disk can hold, even between the files.
Result<> TarReader::check_growth() const {
  const auto out = static_cast<std::uint64_t>(::archive_filter_bytes(archive_.get(), 0));
  if (out > limits_.bytes_max + limits_.entries_max * overhead_per_entry) {
    return fail(Errc::path_refused, "archive: decompresses to more than " +
                                        std::to_string(limits_.bytes_max) + " bytes");
  }
  if (out > feed_->bytes + limits_.growth_free_bytes &&
      out / limits_.growth_ratio_max > feed_->bytes) {
    return fail(Errc::path_refused, "archive: decompresses to more than " +
                                        std::to_string(limits_.growth_ratio_max) +
                                        " times its size");
  }
  return {};
}

Result<std::optional<TarEntry>> TarReader::next() {
  ::archive_entry* entry = nullptr;
  const int status = ::archive_read_next_header(archive_.get(), &entry);
  if (status == ARCHIVE_EOF) return std::nullopt;
  // A warning means that a name is not valid in our locale: names are bytes here.
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
  BERTH_DO(check_growth());
  return described(entry);
}

Result<> TarReader::content(const ContentSink& sink) {
  while (true) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    std::int64_t offset = 0;
    const int status = ::archive_read_data_block(archive_.get(), &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
    BERTH_DO(check_growth());
    if (offset < 0) return fail(Errc::unprocessable, "archive: content before its start");
    BERTH_DO(sink(static_cast<std::uint64_t>(offset), {static_cast<const char*>(bytes), size}));
  }
}

Result<> TarReader::drain() {
  while (true) {
    BERTH_TRY(const std::string_view piece, feed_->source());
    if (piece.empty()) return {};
    feed_->bytes += piece.size();
    if (feed_->bytes > limits_.bytes_max + limits_.entries_max * overhead_per_entry) {
      return fail(Errc::body_too_large, "archive: more is sent after its end than it may have");
    }
  }
}

}  // namespace berth::workspaces
