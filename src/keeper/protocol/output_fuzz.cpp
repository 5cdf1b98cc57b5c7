#include "keeper/protocol/output.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/protocol/text_record.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// Arbitrary bytes as an output file and as an exit record yield records or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace berth::keeper;
  const berth::Fd file{::memfd_create("output", MFD_CLOEXEC)};
  if (::write(file.get(), bytes, size) != static_cast<ssize_t>(size)) std::abort();
  auto reader = OutputReader::open("/proc/self/fd/" + std::to_string(file.get()));
  while (reader) {
    const std::uint64_t before = reader->offset();
    const auto record = reader->next();
    if (!record || !*record) break;
    if (reader->offset() <= before || reader->offset() > size) std::abort();
  }
  const std::string_view text{reinterpret_cast<const char*>(bytes), size};
  if (const auto ended = from_text<Ended>(text, "exit")) {
    const auto again = from_text<Ended>(to_text(*ended), "exit");
    if (!again || to_text(*again) != to_text(*ended)) std::abort();
  }
  return 0;
}
