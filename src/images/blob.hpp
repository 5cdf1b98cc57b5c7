#pragma once

#include "base/digest.hpp"
#include "base/result.hpp"
#include "files/tree_writer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  Sha256 hash_;
  std::vector<char> buffer_;
};

struct Digests {
  std::string stored;   // of the blob itself
  std::string content;  // of its decompressed content
};

// Unpacks to the last byte of the blob. The caller compares the digests and finishes the tree.
Result<Digests> unpack(Blob& blob, files::ArchiveForm form, files::TreeWriter& into);
// The digest of the blob's decompressed content, whether or not it is a tar.
Result<std::string> content_digest(Blob& blob, const files::Limits& limits);

}  // namespace berth::images
