#pragma once

#include "base/digest.hpp"
#include "base/owned.hpp"
#include "base/result.hpp"
#include "files/entry.hpp"
#include "files/limits.hpp"
#include "files/stream.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

struct archive;

namespace berth::files {

// plain: names are literal. layer: ".wh.x" hides x in the layers below, and the blocks that end a
// tar may be missing, as some tools omit them: the digest shows whether it is complete.
enum class ArchiveForm { plain, layer };

struct TarOptions {
  std::string name = "archive";  // in errors
  // The rules of the tree that it becomes. A workspace's archive is plain or compressed with gzip
  // or zstd; an image's with anything that is common.
  Rules rules = Rules::workspace;
  ArchiveForm form = ArchiveForm::plain;
  Limits limits = {};
};

struct ArchiveKind {
  using Raw = ::archive*;
  static Raw none() { return nullptr; }
  static void dispose(Raw archive) noexcept;
};

// A source on its way through libarchive; its address does not change.
struct ArchiveFeed {
  ByteSource source;
  std::uint64_t bytes = 0;  // so far
  std::optional<Error> error = {};
  bool end_added = false;  // the blocks that end a tar were missing
};

// The decompressed content of an archive. Never starts a program to decompress, and stops when it
// grows too much (image_invalid or path_refused).
class Content {
 public:
  // The source and the options must outlive it.
  static Result<Content> open(const ByteSource& source, const TarOptions& options);

  // The next bytes, valid until the next call; empty at the end.
  Result<std::string_view> next();
  // Reads the rest of the content and of the source, so that the sender can finish and digests
  // cover everything.
  Result<> drain();
  // "sha256:..." of all bytes; call once, after `drain`. Empty if nothing is compressed (then it is
  // the source's), and for a workspace.
  std::optional<std::string> digest();
  const TarOptions& options() const { return options_; }
  std::uint64_t bytes() const { return bytes_; }  // so far

 private:
  Content(std::unique_ptr<ArchiveFeed> feed, Owned<ArchiveKind> archive, const TarOptions& options)
      : feed_(std::move(feed)), archive_(std::move(archive)), options_(options) {}

  Result<> begin();
  Result<> check_growth() const;

  std::unique_ptr<ArchiveFeed> feed_;
  Owned<ArchiveKind> archive_;
  const TarOptions& options_;
  bool ended_ = false;
  std::uint64_t bytes_ = 0;
  std::optional<Sha256> hash_;
};

// The entries of a tar. No other format is supported. What is not a complete tar is image_invalid,
// or unprocessable for a workspace.
class TarReader {
 public:
  // The content must outlive the reader.
  static Result<TarReader> open(Content& content);

  // Empty at the end.
  Result<std::optional<Entry>> next();
  // The content of the entry that `next` returned, never more than the entry says; gaps are holes.
  using ContentSink = std::function<Result<>(std::uint64_t offset, std::string_view bytes)>;
  Result<> content(const Entry& entry, const ContentSink& sink);

 private:
  TarReader(const TarOptions& options, std::unique_ptr<ArchiveFeed> feed,
            Owned<ArchiveKind> archive)
      : options_(options), feed_(std::move(feed)), archive_(std::move(archive)) {}

  const TarOptions& options_;
  std::unique_ptr<ArchiveFeed> feed_;
  Owned<ArchiveKind> archive_;
};

}  // namespace berth::files
