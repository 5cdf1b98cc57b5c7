#pragma once

#include "base/owned.hpp"
#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace berth::snapshots {

// Writes objects into one new pack of a repository. Git sees them when `finish` returns, and not
// before: a writer that is dropped or killed leaves at most a file that garbage collection removes.
// Memory does not depend on the size of an object, only on the number of objects.
class PackWriter {
 public:
  static Result<PackWriter> in(const Repository& repository);
  PackWriter(PackWriter&& other) noexcept;
  PackWriter& operator=(PackWriter&&) = delete;
  ~PackWriter();

  // A blob in pieces: begin, write until `bytes` are given, then finish or abandon.
  Result<> begin_blob(std::uint64_t bytes);
  Result<> write(std::string_view piece);
  // An object that this pack has already is not written again.
  Result<ObjectId> finish_blob();
  void abandon_blob();

  Result<ObjectId> add(ObjectType type, std::string_view content);
  bool has(const ObjectId& id) const { return entries_.contains(id); }
  std::size_t count() const { return entries_.size(); }

  // Durable when it returns. Without objects it does nothing.
  Result<> finish();

 private:
  struct Entry {
    std::uint64_t offset = 0;
    std::uint32_t crc = 0;
  };
  struct EndDeflate {
    void operator()(z_stream* stream) const;
  };
  PackWriter(Fd file, std::string folder, std::string draft);

  Result<> begin(ObjectType type, std::uint64_t bytes);
  Result<> compress(std::string_view piece, int flush);
  Result<> append(std::string_view bytes);
  Result<> flush();
  Result<ObjectId> seal();
  Result<> write_index(const ObjectId& pack) const;

  Fd file_;
  std::string folder_;  // objects/pack
  std::string draft_;   // empty when it was put in place
  std::unique_ptr<z_stream, EndDeflate> deflate_;
  std::unordered_map<ObjectId, Entry> entries_;

  std::string buffer_;         // the end of the pack, not written yet
  std::uint64_t written_ = 0;  // bytes before the buffer
  Entry current_;
  std::unique_ptr<Sha1> hash_;
  std::uint64_t missing_ = 0;  // bytes of the current object
};

}  // namespace berth::snapshots
