#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "images/hash.hpp"
#include "images/limits.hpp"
#include "images/tree_writer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct archive;

namespace berth::images {

// The bytes of a tar on their way to the archive reader: counted, limited and hashed in passing.
// May be a pipe.
class Blob {
 public:
  // The descriptors must outlive it. More bytes than `bytes_max` are an error, not the end. When
  // `stop` becomes readable, the next call returns `cancelled`, even while it waits for bytes.
  Blob(int fd, std::string name, std::uint64_t bytes_max, int stop = -1);

  // The next bytes, valid until the next call; empty at the end.
  Result<std::string_view> next();
  // Reads what the archive reader left, so that the digest covers everything.
  Result<> drain();
  // "sha256:..." of all bytes; call once, after `drain`.
  std::string digest() { return hash_.digest(); }
  std::uint64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

 private:
  Result<> wait() const;

  int fd_;
  int stop_;
  std::string name_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  Hash hash_;
  std::vector<char> buffer_;
};

struct ArchiveKind {
  using Raw = ::archive*;
  static Raw none() { return nullptr; }
  static void dispose(Raw archive) noexcept;
};

// The decompressed content of a blob, for any built-in compression. Never starts a program to
// decompress.
class Content {
 public:
  // The blob must outlive it.
  static Result<Content> open(Blob& blob, const Limits& limits);

  // The next bytes, valid until the next call; empty at the end.
  Result<std::string_view> next();
  // Reads the rest, so that the digest covers everything.
  Result<> drain();
  // "sha256:..." of all bytes; call once, after `drain`. Empty if nothing is compressed: then it is
  // the blob's.
  std::optional<std::string> digest();
  const std::string& name() const { return feed_->blob.name(); }
  std::uint64_t bytes() const { return bytes_; }  // so far

 private:
  // The state of libarchive's read callback; its address does not change when this object moves.
  struct Feed {
    Blob& blob;
    std::optional<Error> error;
  };
  Content(std::unique_ptr<Feed> feed, Owned<ArchiveKind> archive, const Limits& limits)
      : feed_(std::move(feed)), archive_(std::move(archive)), limits_(limits) {}

  static std::ptrdiff_t feed(::archive* archive, void* context, const void** bytes);
  Result<> begin();
  Result<> check_growth() const;
  std::unexpected<Error> failure() const;

  std::unique_ptr<Feed> feed_;
  Owned<ArchiveKind> archive_;
  Limits limits_;
  bool ended_ = false;
  std::uint64_t bytes_ = 0;
  std::optional<Hash> hash_;
};

// plain: names are literal. layer: ".wh.x" hides x in the layers below, and the blocks that end a
// tar may be missing, as some tools omit them: the digest shows whether it is complete.
enum class ArchiveForm { plain, layer };

// The entries of a tar. No other format is supported.
class ArchiveReader {
 public:
  // The content must outlive the reader.
  static Result<ArchiveReader> open(Content& content, ArchiveForm form);

  // Empty at the end.
  Result<std::optional<Entry>> next();
  // The content of the file that `next` returned; holes are preserved.
  Result<> copy_content(const Entry& entry, int into, Meter& meter);

 private:
  struct Feed {
    Content& content;
    ArchiveForm form;
    std::optional<Error> error = {};
    bool end_added = false;
  };
  ArchiveReader(std::unique_ptr<Feed> feed, Owned<ArchiveKind> archive)
      : feed_(std::move(feed)), archive_(std::move(archive)) {}

  static std::ptrdiff_t feed(::archive* archive, void* context, const void** bytes);
  std::unexpected<Error> failure() const;

  std::unique_ptr<Feed> feed_;
  Owned<ArchiveKind> archive_;
};

struct Digests {
  std::string stored;   // of the blob itself
  std::string content;  // of its decompressed content
};

// Unpacks to the last byte of the blob. The caller compares the digests and finishes the tree.
Result<Digests> unpack(Blob& blob, ArchiveForm form, TreeWriter& into, Meter& meter);
// The digest of the blob's decompressed content, whether or not it is a tar.
Result<std::string> content_digest(Blob& blob, const Limits& limits);

}  // namespace berth::images
