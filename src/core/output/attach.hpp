#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/rows/run.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

// What travels over the socket of an attached run. Output is binary, one stream at a time, and each
// frame names the place in the log at which a new socket would go on; everything else is JSON text.
namespace berth::core {

struct OutputFrame {
  OutputStream stream = OutputStream::stdout_;
  std::int64_t next_offset = 0;
  std::string_view bytes = {};
};
// Byte 0 is the stream (1 or 2), then 8 bytes of next_offset, the highest first, then the output.
std::string to_frame(const OutputFrame& frame);
Result<OutputFrame> parse_output_frame(std::string_view frame);

// What the server says besides output. A client passes over types that it does not know.
BOOST_DEFINE_ENUM_CLASS(AttachNews, state, ended, stdin_taken, error)

// What a client may say.
// NOLINTNEXTLINE(readability-identifier-naming): stdin is a macro
BOOST_DEFINE_ENUM_CLASS(AttachVerb, stdin_, stdin_end, resize, signal, cancel)

struct AttachStdin {
  std::string bytes;
};
struct AttachStdinEnd {};
struct AttachSignal {
  int number = 0;
};
struct AttachCancel {};
using AttachRequest =
    std::variant<AttachStdin, AttachStdinEnd, TerminalSize, AttachSignal, AttachCancel>;

std::string to_text(const AttachRequest& request);
// The error says which field of the frame is wrong.
Result<AttachRequest> parse_attach_request(std::string_view text);

// From 1 to 10,000 either way.
bool is_size(const TerminalSize& size);

// Bytes of stdin that a client may have sent and the server not yet taken: the server holds them
// while the command does not read.
inline constexpr std::size_t attach_stdin_window = std::size_t{1} << 20;

// 9 for "SIGKILL", 0 for what is no signal of this system.
int signal_number(std::string_view name);

}  // namespace berth::core
