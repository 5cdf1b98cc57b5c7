#include "files/tar_writer.hpp"

#include "base/text.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>

namespace berth::files {
namespace {

struct EntryKind {
  using Raw = ::archive_entry*;
  static Raw none() { return nullptr; }
  static void dispose(Raw entry) noexcept { ::archive_entry_free(entry); }
};

}  // namespace

void TarWriter::ArchiveWriterKind::dispose(Raw archive) noexcept {
  ::archive_write_free(archive);
}

// Freeing the archive writes a proper end even if it is incomplete; that must not reach the sink.
TarWriter::~TarWriter() {
  given_up_ = true;
}

Result<> TarWriter::open() {
  archive_ = Owned<ArchiveWriterKind>{::archive_write_new()};
  if (!archive_) return fail(Errc::io_failed, "no memory for an archive writer");
  ::archive_write_set_format_pax(archive_.get());
  // Sends a few large pieces to the sink instead of many small ones; the end is padded as tar
  // requires.
  ::archive_write_set_bytes_per_block(archive_.get(), 128 << 10);
  ::archive_write_set_bytes_in_last_block(archive_.get(), 10240);
  return checked(::archive_write_open(archive_.get(), this, nullptr, &TarWriter::pass, nullptr));
}

std::ptrdiff_t TarWriter::pass(::archive* archive, void* self, const void* bytes,
                               std::size_t size) {
  auto& writer = *static_cast<TarWriter*>(self);
  if (writer.given_up_) return static_cast<std::ptrdiff_t>(size);
  Result<> done = writer.sink_({static_cast<const char*>(bytes), size});
  if (done) return static_cast<std::ptrdiff_t>(size);
  writer.error_ = std::move(done).error();
  ::archive_set_error(archive, EIO, "the sink failed");
  return -1;
}

// A warning means that a name is not valid in our locale: such names are written as bytes.
Result<> TarWriter::checked(int status) const {
  if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return {};
  if (error_) return std::unexpected(*error_);
  const char* said = ::archive_error_string(archive_.get());
  return fail(Errc::io_failed, "archive: " + as_utf8(said != nullptr ? said : "failed"));
}

Result<> TarWriter::add(const std::string& path, const struct stat& status,
                        const std::string& target) {
  const Owned<EntryKind> entry{::archive_entry_new()};
  if (!entry) return fail(Errc::io_failed, "no memory for an archive entry");
  ::archive_entry* raw = entry.get();
  ::archive_entry_set_pathname(raw, path.c_str());
  ::archive_entry_set_mode(raw, status.st_mode & (S_IFMT | 0777));
  ::archive_entry_set_mtime(raw, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  ::archive_entry_set_size(raw, S_ISREG(status.st_mode) ? status.st_size : 0);
  if (S_ISLNK(status.st_mode)) ::archive_entry_set_symlink(raw, target.c_str());
  BERTH_DO(checked(::archive_write_header(archive_.get(), raw)));
  meter_.add_entry();
  return {};
}

Result<> TarWriter::add_file(const std::string& path, const ReadableFile& file) {
  BERTH_DO(add(path, file.status()));
  return file.copy_to([this](std::string_view piece) { return add_content(piece); });
}

Result<> TarWriter::add_content(std::string_view piece) {
  while (!piece.empty()) {
    const la_ssize_t wrote = ::archive_write_data(archive_.get(), piece.data(), piece.size());
    if (wrote <= 0) return checked(ARCHIVE_FATAL);
    meter_.add_bytes(static_cast<std::uint64_t>(wrote));
    piece.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<> TarWriter::close() {
  return checked(::archive_write_close(archive_.get()));
}

}  // namespace berth::files
