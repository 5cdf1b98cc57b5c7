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

// The bytes of a tar on their way into the archive reader: counted, bounded and hashed as they
// pass. A pipe will do.
class Blob {
 public:
  // The descriptors must outlive it. More bytes than `bytes_max` are an error, not the end. When
  // something can be read from `stop`, the next bytes are `cancelled`, also while none come.
  Blob(int fd, std::string name, std::uint64_t bytes_max, int stop = -1);

  // The next bytes, good until the next call; empty at the end.
  Result<std::string_view> next();
  // Reads what the archive reader left, so that the digest is that of the whole.
  Result<> drain();
  // "sha256:..." of all bytes; once, after `drain`.
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

// What is in a blob, in any compression that is built in. No outside program is ever started to
// decompress.
class Content {
 public:
  // The blob must outlive it.
  static Result<Content> open(Blob& blob, const Limits& limits);

  // The next bytes, good until the next call; empty at the end.
  Result<std::string_view> next();
  // Reads what is left, so that the digest is that of the whole.
  Result<> drain();
  // "sha256:..." of all bytes; once, after `drain`. None where nothing is compressed: then it is
  // the blob's.
  std::optional<std::string> digest();
  const std::string& name() const { return feed_->blob.name(); }
  std::uint64_t bytes() const { return bytes_; }  // so far

 private:
  // What the read call-back of libarchive works with; it stays where it is when this moves.
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

// plain: names mean what they say. layer: ".wh.x" hides x of the layers below, and the blocks that
// end a tar may be missing, as some tools leave them out: the digest tells whether it is whole.
enum class ArchiveForm { plain, layer };

// The entries of a tar. No other format is understood.
class ArchiveReader {
 public:
  // The content must outlive the reader.
  static Result<ArchiveReader> open(Content& content, ArchiveForm form);

  // Nothing at the end.
  Result<std::optional<Entry>> next();
  // The content of the file that `next` returned, holes left as holes.
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
  std::string stored;   // of the blob as it is
  std::string content;  // of what is in it, decompressed
};

// Unpacks to the last byte of the blob. The caller compares its digests, and finishes the tree.
Result<Digests> unpack(Blob& blob, ArchiveForm form, TreeWriter& into, Meter& meter);
// Of what is in the blob, decompressed, whether it is a tar or not.
Result<std::string> content_digest(Blob& blob, const Limits& limits);

}  // namespace berth::images
