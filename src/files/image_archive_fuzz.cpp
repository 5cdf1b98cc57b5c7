#include "base/assert.hpp"
#include "base/remove_tree.hpp"
#include "images/archive.hpp"
#include "images/disk.hpp"
#include "images/tree_digest.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

// Arbitrary bytes as a layer, unpacked into a folder in memory. Nothing may appear outside the
// root, and what was accepted must have a digest.
namespace berth::images {
namespace {

constexpr Limits small{.bytes_max = 1 << 20,
                       .file_bytes_max = 1 << 18,
                       .entries_max = 200,
                       .growth_free_bytes = 1 << 20};

class Scratch {
 public:
  Scratch() {
    BERTH_ASSERT(::mkdtemp(path_.data()) != nullptr);
    BERTH_ASSERT(::mkdir(root().c_str(), 0700) == 0);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { BERTH_ASSERT(remove_tree(path_).has_value()); }

  std::string root() const { return path_ + "/root"; }
  Fd open(const std::string& path) const {
    return Fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  }
  std::size_t things() const { return names_of(open(path_).get(), path_).value().size(); }

 private:
  std::string path_ = "/dev/shm/berth-fuzz-XXXXXX";
};

// Corrects the header checksums: otherwise hardly any mutation would pass.
std::string mended(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t block_bytes = 512;
  std::string tar{reinterpret_cast<const char*>(data), size};
  for (std::size_t at = 0; at + block_bytes <= tar.size(); at += block_bytes) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    tar.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < block_bytes; ++i) sum += static_cast<unsigned char>(tar[at + i]);
    for (std::size_t digit = 0; digit < 6; ++digit) {
      tar[at + 148 + 5 - digit] = static_cast<char>('0' + ((sum >> (3 * digit)) & 7));
    }
    tar[at + 154] = '\0';
  }
  return tar;
}

void check(const std::string& tar, ArchiveForm form) {
  const Scratch scratch;
  const Fd file{::memfd_create("tar", MFD_CLOEXEC)};
  BERTH_ASSERT(::write(file.get(), tar.data(), tar.size()) == static_cast<ssize_t>(tar.size()));
  ::lseek(file.get(), 0, SEEK_SET);
  Blob blob{file.get(), "tar", small.bytes_max};
  Meter meter;
  TreeWriter into{scratch.open(scratch.root()), {.limits = small}, meter};
  const Result<Digests> done = unpack(blob, form, into, meter);
  BERTH_ASSERT(into.finish().has_value());
  BERTH_ASSERT(scratch.things() == 1);
  if (!done) return;
  const auto digest = digest_of_tree(scratch.open(scratch.root()).get(), small, meter);
  BERTH_ASSERT(digest.has_value());
}

}  // namespace
}  // namespace berth::images

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  using berth::images::ArchiveForm;
  berth::images::check(berth::images::mended(data + 1, size - 1),
                       data[0] % 2 == 0 ? ArchiveForm::plain : ArchiveForm::layer);
  return 0;
}
