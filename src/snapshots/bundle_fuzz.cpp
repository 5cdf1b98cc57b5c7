#include "base/assert.hpp"
#include "snapshots/apply_journal.hpp"
#include "snapshots/bundle_header.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

// A header that is accepted has only whole ids and ends within the text, and a journal that is
// accepted is what it would be written as.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::snapshots;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  if (const auto header = BundleHeader::parse(bytes)) {
    BERTH_ASSERT(header->bytes <= size && bytes[header->bytes - 1] == '\n');
    for (const auto& [name, id] : header->refs) {
      BERTH_ASSERT(!name.empty() && !name.contains('\n'));
      BERTH_ASSERT(bytes.contains(id.hex() + " " + name));
    }
    for (const ObjectId& id : header->needs) BERTH_ASSERT(bytes.contains("-" + id.hex()));
  } else {
    BERTH_ASSERT(header.error().code == berth::Errc::bundle_invalid);
  }
  if (const auto journal = ApplyJournal::parse(bytes)) BERTH_ASSERT(journal->text() == bytes);
  return 0;
}
