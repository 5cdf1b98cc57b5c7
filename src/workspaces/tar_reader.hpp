#pragma once

#include "base/owned.hpp"
#include "workspaces/limits.hpp"
#include "workspaces/stream.hpp"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

struct archive;

namespace berth::workspaces {

// One entry as an archive describes it. Nothing in it is checked.
struct TarEntry {
  enum class Type { file, directory, symbolic_link, hard_link, other };

  std::string path;
  Type type = Type::file;
  mode_t mode = 0644;
  timespec modified = {};
  std::uint64_t bytes = 0;
  std::string target = {};  // of a link
};

// The entries of a tar, plain or compressed with gzip or zstd, as it arrives. No other format is
// supported, and no program is ever started. Anything else is `unprocessable`; a tar that grows too
// much during decompression is `path_refused`.
class TarReader {
 public:
  // The source must outlive the reader.
  static Result<TarReader> open(const ByteSource& source, const Limits& limits);

  // Empty at the end.
  Result<std::optional<TarEntry>> next();
  // The content of the entry that `next` returned; gaps are holes.
  using ContentSink = std::function<Result<>(std::uint64_t offset, std::string_view bytes)>;
  Result<> content(const ContentSink& sink);
  // Reads what follows the archive, so that the sender can finish.
  Result<> drain();

 private:
  struct ArchiveKind {
    using Raw = ::archive*;
    static Raw none() { return nullptr; }
    static void dispose(Raw archive) noexcept;
  };
  // The state of libarchive's callback; its address does not change when the reader moves.
  struct Feed {
    explicit Feed(const ByteSource& given) : source(given) {}
    const ByteSource& source;
    std::uint64_t bytes = 0;
    std::optional<Error> error = {};
  };
  TarReader(std::unique_ptr<Feed> feed, Owned<ArchiveKind> archive, const Limits& limits)
      : feed_(std::move(feed)), archive_(std::move(archive)), limits_(limits) {}

  static std::ptrdiff_t take(::archive* archive, void* context, const void** bytes);
  std::unexpected<Error> failure() const;
  Result<> check_growth() const;

  std::unique_ptr<Feed> feed_;
  Owned<ArchiveKind> archive_;
  Limits limits_;
};

}  // namespace berth::workspaces
