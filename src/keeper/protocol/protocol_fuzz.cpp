#include "keeper/protocol/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace berth::keeper;

// A decoded message must encode to the same bytes: no two encodings mean the same.
template <class Message>
void round_trip(const Frame& frame) {
  const auto message = decode<Message>(frame);
  if (!message) return;
  std::string again;
  WireWriter{again}.put(*message);
  if (again != frame.message) std::abort();
  if constexpr (std::same_as<Message, Exec>) {
    if (check(*message) && message->argv.empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FrameReader reader;
  reader.feed({reinterpret_cast<const char*>(bytes), size});
  while (true) {
    const auto frame = reader.next();
    if (!frame || !*frame) return 0;
    round_trip<Exec>(**frame);
    round_trip<Write>(**frame);
    round_trip<Listing>(**frame);
    round_trip<Ended>(**frame);
    round_trip<Refused>(**frame);
    round_trip<Open>(**frame);
  }
}
