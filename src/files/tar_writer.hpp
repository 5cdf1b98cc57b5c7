#pragma once

#include "files/progress.hpp"
#include "files/readable_file.hpp"

#include <optional>
#include <string>

struct archive;

namespace berth::files {

// Writes a tar (pax) with exact names and link targets, permission bits and times. Owners are not
// written: their ids have no meaning elsewhere.
class TarWriter {
 public:
  // Both must outlive the writer.
  TarWriter(const ByteSink& sink, Meter& meter) : sink_(sink), meter_(meter) {}
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;
  ~TarWriter();

  Result<> open();
  // A folder or a symbolic link, under a path in the archive.
  Result<> add(const std::string& path, const struct stat& status, const std::string& target = {});
  Result<> add_file(const std::string& path, const ReadableFile& file);
  Result<> close();

 private:
  struct ArchiveWriterKind {
    using Raw = ::archive*;
    static Raw none() { return nullptr; }
    static void dispose(Raw archive) noexcept;
  };
  static std::ptrdiff_t pass(::archive* archive, void* self, const void* bytes, std::size_t size);
  Result<> checked(int status) const;
  Result<> add_content(std::string_view piece);

  const ByteSink& sink_;
  Meter& meter_;
  std::optional<Error> error_;  // from the sink
  bool given_up_ = false;
  Owned<ArchiveWriterKind> archive_;
};

}  // namespace berth::files
