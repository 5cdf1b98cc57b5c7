#include "base/assert.hpp"
#include "base/remove_tree.hpp"
#include "files/tree_digest.hpp"
#include "files/tree_writer.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

// Arbitrary bytes as an archive, unpacked into a folder in memory under each set of rules. Nothing
// may appear outside the root, and what was accepted must have a digest.
namespace berth::files {
namespace {

constexpr Limits small{.entries_max = 200,
                       .bytes_max = 1 << 20,
                       .file_bytes_max = 1 << 18,
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

Result<> unpack(std::string_view tar, const TarOptions& options, TreeWriter& into) {
  const ByteSource source = source_of(tar);
  BERTH_TRY(Content content, Content::open(source, options));
  BERTH_TRY(TarReader reader, TarReader::open(content));
  BERTH_DO(into.put_all(reader, options.form));
  return content.drain();
}

void check(std::string_view tar, Rules rules, ArchiveForm form, LinkRule links) {
  const Scratch scratch;
  Meter meter;
  TreeWriter into{
      scratch.open(scratch.root()), {.rules = rules, .limits = small, .links = links}, meter};
  const Result<> done = unpack(tar, {.rules = rules, .form = form, .limits = small}, into);
  BERTH_ASSERT(done || (!done.error().message.empty() && done.error().code != Errc::bug));
  BERTH_ASSERT(into.finish().has_value());
  BERTH_ASSERT(scratch.things() == 1);
  if (!done) return;
  const auto digest = digest_of_tree(scratch.open(scratch.root()).get(), small, meter);
  BERTH_ASSERT(digest.has_value() || rules == Rules::layer);  // whiteouts have none
}

}  // namespace
}  // namespace berth::files

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::files;
  if (size == 0) return 0;
  const std::string tar = mended(data + 1, size - 1);
  check(tar, Rules::image, data[0] % 2 == 0 ? ArchiveForm::plain : ArchiveForm::layer,
        LinkRule::any);
  check(tar, Rules::layer, ArchiveForm::plain, LinkRule::any);
  check(tar, Rules::workspace, ArchiveForm::plain, LinkRule::inside);
  return 0;
}
