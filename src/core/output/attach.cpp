#include "core/output/attach.hpp"

#include "base/base64.hpp"

#include <csignal>
#include <cstring>

namespace berth::core {
namespace {

constexpr std::size_t head_bytes = 9;
constexpr std::int64_t terminal_side_max = 10'000;

// A request as written; which fields belong to which type is checked after decoding.
struct Written {
  AttachVerb type = AttachVerb::stdin_;
  std::optional<std::string> data = {};
  std::optional<std::int64_t> columns = {};
  std::optional<std::int64_t> rows = {};
  std::optional<std::string> name = {};
};
BOOST_DESCRIBE_STRUCT(Written, (), (type, data, columns, rows, name))

std::unexpected<Error> wrong(const char* field, const std::string& what) {
  return std::unexpected(Error{Errc::validation_failed,
                               std::string{"frame "} + field + ": " + what,
                               "send the frame as docs/operating.md describes it",
                               {{field, what}}});
}

Result<AttachRequest> stdin_of(const Written& in) {
  const auto bytes = in.data ? parse_base64(*in.data) : std::nullopt;
  if (!bytes) return wrong("/data", "is not base64");
  return AttachStdin{*bytes};
}

bool is_side(const std::optional<std::int64_t>& side) {
  return side && *side >= 1 && *side <= terminal_side_max;
}

Result<AttachRequest> size_of(const Written& in) {
  if (!is_side(in.columns)) return wrong("/columns", "is not from 1 to 10000");
  if (!is_side(in.rows)) return wrong("/rows", "is not from 1 to 10000");
  return TerminalSize{.columns = *in.columns, .rows = *in.rows};
}

Result<AttachRequest> signal_of(const Written& in) {
  const int number = signal_number(in.name.value_or(""));
  if (number == 0) return wrong("/name", "is not a signal such as SIGINT");
  return AttachSignal{number};
}

struct Writer {
  bj::object operator()(const AttachStdin& in) const {
    return {{"type", name_of(AttachVerb::stdin_)}, {"data", base64(in.bytes)}};
  }
  bj::object operator()(const AttachStdinEnd& /*in*/) const {
    return {{"type", name_of(AttachVerb::stdin_end)}};
  }
  bj::object operator()(const TerminalSize& in) const {
    return {{"type", name_of(AttachVerb::resize)}, {"columns", in.columns}, {"rows", in.rows}};
  }
  bj::object operator()(const AttachSignal& in) const {
    const char* name = ::sigabbrev_np(in.number);
    return {{"type", name_of(AttachVerb::signal)},
            {"name", "SIG" + std::string{name != nullptr ? name : ""}}};
  }
  bj::object operator()(const AttachCancel& /*in*/) const {
    return {{"type", name_of(AttachVerb::cancel)}};
  }
};

}  // namespace

std::string to_frame(const OutputFrame& frame) {
  std::string out;
  out.reserve(head_bytes + frame.bytes.size());
  out += frame.stream == OutputStream::stdout_ ? '\1' : '\2';
  const auto place = static_cast<std::uint64_t>(frame.next_offset);
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(place >> shift & 0xffU);
  out += frame.bytes;
  return out;
}

Result<OutputFrame> parse_output_frame(std::string_view frame) {
  if (frame.size() < head_bytes || (frame[0] != '\1' && frame[0] != '\2')) {
    return fail(Errc::io_failed, "the server sent a frame that is not output");
  }
  std::uint64_t place = 0;
  for (const char byte : frame.substr(1, head_bytes - 1)) {
    place = place << 8U | static_cast<unsigned char>(byte);
  }
  return OutputFrame{.stream = frame[0] == '\1' ? OutputStream::stdout_ : OutputStream::stderr_,
                     .next_offset = static_cast<std::int64_t>(place),
                     .bytes = frame.substr(head_bytes)};
}

std::string to_text(const AttachRequest& request) {
  return encode_text(bj::value(std::visit(Writer{}, request)));
}

Result<AttachRequest> parse_attach_request(std::string_view text) {
  BERTH_TRY(const Written in, decode_text<Written>(text));
  switch (in.type) {
    case AttachVerb::stdin_: return stdin_of(in);
    case AttachVerb::stdin_end: return AttachStdinEnd{};
    case AttachVerb::resize: return size_of(in);
    case AttachVerb::signal: return signal_of(in);
    case AttachVerb::cancel: return AttachCancel{};
  }
  return wrong("/type", "is unknown");
}

bool is_size(const TerminalSize& size) {
  return is_side(size.columns) && is_side(size.rows);
}

int signal_number(std::string_view name) {
  if (!name.starts_with("SIG")) return 0;
  name.remove_prefix(3);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

}  // namespace berth::core
