#pragma once

#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"
#include "keeper/protocol/wire.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Frames: u32 length of the rest, u8 verb, u64 request id, then the message. No I/O here, so that
// the keeper's loop, an Asio driver and a blocking test use the same code.
namespace berth::keeper {

inline constexpr std::size_t frame_prefix_bytes = 4;
inline constexpr std::size_t frame_header_bytes =
    1 + 8;  // what the length counts besides the message

struct Frame {
  Verb verb = Verb::none;
  std::uint64_t request = 0;
  std::string_view message = {};  // valid until the reader is fed again
};

// Takes bytes as they arrive and returns frames as they become complete. A frame that is too long
// or has an unknown verb is an error, after which the stream is unusable.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  // Empty if more bytes are needed.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  std::size_t taken_ = 0;
};

template <Described Message>
void append_frame(std::string& out, std::uint64_t request, const Message& message) {
  const std::size_t at = out.size();
  WireWriter writer{out};
  writer.put(std::uint32_t{0});
  writer.put(Message::verb);
  writer.put(request);
  writer.put(message);
  std::string length;
  WireWriter{length}.put(static_cast<std::uint32_t>(out.size() - at - frame_prefix_bytes));
  out.replace(at, length.size(), length);
}

std::unexpected<Error> malformed(Verb verb);

template <Described Message>
Result<Message> decode(const Frame& frame) {
  Message message;
  WireReader reader{frame.message};
  if (frame.verb != Message::verb || !reader.get(message) || !reader.at_end()) {
    return malformed(frame.verb);
  }
  return message;
}

// Letters, digits, '.', '_' and '-', not starting with '.': safe as a part of a file name.
bool is_exec_id(std::string_view text);
// Validates a command before anything is done for it.
Result<> check(const Exec& exec);
// The same for the same command under the same id, in every process and version.
std::uint64_t fingerprint(const Exec& exec);

Refused as_refused(const Error& error);
Error as_error(const Refused& refused);

}  // namespace berth::keeper
