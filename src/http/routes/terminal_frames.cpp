#include "base/text.hpp"
#include "http/routes/attach_news.hpp"
#include "http/routes/terminal.hpp"

namespace berth::http {
namespace {

using core::AttachNews;
using core::AttachRequest;

struct EndedCommand {
  std::string id;
  std::string outcome;
  std::optional<std::int64_t> exit_code;
  std::optional<std::string> signal;
  std::int64_t bytes_lost;        // output that a full disk did not keep
  std::int64_t bytes_over_limit;  // output beyond the limit of any command
};
BOOST_DESCRIBE_STRUCT(EndedCommand, (),
                      (id, outcome, exit_code, signal, bytes_lost, bytes_over_limit))

struct EndedNews {
  AttachNews type = AttachNews::ended;
  EndedCommand exec;
};
BOOST_DESCRIBE_STRUCT(EndedNews, (), (type, exec))

BOOST_DEFINE_ENUM_CLASS(PageNews, ready, output, error, closed)
BOOST_DEFINE_ENUM_CLASS(PageVerb, input, resize)

struct PageReady {
  PageNews type = PageNews::ready;
};
BOOST_DESCRIBE_STRUCT(PageReady, (), (type))

struct PageOutput {
  PageNews type = PageNews::output;
  std::string data;
};
BOOST_DESCRIBE_STRUCT(PageOutput, (), (type, data))

struct PageClosed {
  PageNews type = PageNews::closed;
  std::string reason;
  std::optional<std::int64_t> exit_code;
  std::optional<std::string> signal;
};
BOOST_DESCRIBE_STRUCT(PageClosed, (), (type, reason, exit_code, signal))

// A request as sent; which fields belong to which type is checked after decoding.
struct PageRequest {
  PageVerb type = PageVerb::input;
  std::optional<std::string> data;
  std::optional<std::int64_t> cols;
  std::optional<std::int64_t> rows;
};
BOOST_DESCRIBE_STRUCT(PageRequest, (), (type, data, cols, rows))

Result<> expect_text(const Message& message) {
  if (message.kind == Message::Kind::text) return {};
  return fail(Errc::validation_failed, "the frame is binary", "a client sends JSON in text frames");
}

std::unexpected<Error> wrong(const char* field, const std::string& what) {
  return std::unexpected(Error{Errc::validation_failed,
                               std::string{"frame "} + field + ": " + what,
                               "send {type: input, data} or {type: resize, cols, rows}",
                               {{field, what}}});
}

}  // namespace

std::optional<Message> AttachFrames::output(const engine::OutputPiece& piece) {
  const bool is_out = piece.kind == engine::OutputKind::out;
  const auto stream = is_out ? core::OutputStream::stdout_ : core::OutputStream::stderr_;
  return Message{
      .kind = Message::Kind::binary,
      .bytes = core::to_frame({stream, static_cast<std::int64_t>(piece.next_offset), piece.bytes})};
}

std::optional<Message> AttachFrames::taken(std::size_t bytes) {
  const TakenNews news{.bytes = static_cast<std::int64_t>(bytes)};
  return Message{.bytes = encode_text(news)};
}

Message AttachFrames::failed(const Error& error) {
  return {.bytes = encode_error(error)};
}

Message AttachFrames::ended(const std::string& exec_id, const engine::Ended& ended) {
  const EndedNews news{.exec = {.id = exec_id,
                                .outcome = std::string{name_of(ended.outcome)},
                                .exit_code = ended.exit_code,
                                .signal = ended.signal,
                                .bytes_lost = ended.bytes_lost,
                                .bytes_over_limit = ended.bytes_over_limit}};
  return {.bytes = encode_text(news)};
}

Result<AttachRequest> AttachFrames::request(const Message& message) {
  BERTH_DO(expect_text(message));
  return core::parse_attach_request(message.bytes);
}

std::optional<Message> PageFrames::ready() {
  return Message{.bytes = encode_text(PageReady{})};
}

std::optional<Message> PageFrames::output(const engine::OutputPiece& piece) {
  std::string bytes = std::exchange(cut_, {}) + std::string{piece.bytes};
  const std::size_t whole = bytes.size() - cut_character_length(bytes);
  cut_ = bytes.substr(whole);
  bytes.resize(whole);
  if (bytes.empty()) return std::nullopt;
  const PageOutput news{.data = as_utf8(bytes)};
  return Message{.bytes = encode_text(news)};
}

Message PageFrames::failed(const Error& error) {
  return {.bytes = encode_error(error)};
}

Message PageFrames::ended(const std::string& /*exec_id*/, const engine::Ended& ended) {
  const PageClosed news{.reason = std::string{name_of(ended.outcome)},
                        .exit_code = ended.exit_code,
                        .signal = ended.signal};
  return {.bytes = encode_text(news)};
}

Result<AttachRequest> PageFrames::request(const Message& message) {
  BERTH_DO(expect_text(message));
  BERTH_TRY(PageRequest in, decode_text<PageRequest>(message.bytes));
  if (in.type == PageVerb::input) {
    if (!in.data) return wrong("/data", "is required");
    return core::AttachStdin{*std::move(in.data)};
  }
  const core::TerminalSize size{.columns = in.cols.value_or(0), .rows = in.rows.value_or(0)};
  if (!core::is_size(size)) return wrong("/cols", "and rows are not from 1 to 10000");
  return size;
}

}  // namespace berth::http
