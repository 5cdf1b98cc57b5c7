#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/rows/run.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

// The protocol of an attached run's socket. Output is binary, one stream per frame. Each frame
// carries the log offset at which a new socket would continue; everything else is JSON text.
namespace berth::core {

struct OutputFrame {
  OutputStream stream = OutputStream::stdout_;
  std::int64_t next_offset = 0;
  std::string_view bytes = {};
};
// Byte 0 is the stream (1 or 2), then 8 bytes of next_offset in big-endian order, then the output.
std::string to_frame(const OutputFrame& frame);
Result<OutputFrame> parse_output_frame(std::string_view frame);

// Server messages other than output. A client ignores unknown types.
BOOST_DEFINE_ENUM_CLASS(AttachNews, state, ended, stdin_taken, error)

// Client requests.
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
// The error names the invalid field of the frame.
Result<AttachRequest> parse_attach_request(std::string_view text);

// 1 to 10,000 in each dimension.
bool is_size(const TerminalSize& size);

// How many stdin bytes a client may send ahead of the server. The server buffers them while the
// command does not read.
inline constexpr std::size_t attach_stdin_window = std::size_t{1} << 20;

// 9 for "SIGKILL", 0 for a name that is not a signal on this system.
int signal_number(std::string_view name);

}  // namespace berth::core
