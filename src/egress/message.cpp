#include "egress/message.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace berth::egress {
namespace {

constexpr std::size_t field_count_max = 128;
constexpr std::size_t chunk_line_bytes_max = 256;
constexpr std::size_t trailer_bytes_max = 8UL * 1024;
constexpr std::size_t length_digits_max = 18;  // below 2^63
constexpr std::size_t chunk_digits_max = 12;

std::unexpected<Error> wrong(std::string message, std::string remedy = {}) {
  return fail(Errc::bad_request, std::move(message), std::move(remedy));
}

// All that may stand around the value of a field: other blanks would hide what follows them.
constexpr std::string_view field_blanks = " \t";

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  const auto fits = [&](char c) {
    const char l = lower(c);
    return (l >= 'a' && l <= 'z') || is_digit(c) || marks.contains(c);
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// Cuts off and returns the line, without its end; the text has one.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 2, text.size()));
  return line;
}

std::optional<Version> parse_version(std::string_view text) {
  if (text == "HTTP/1.1") return Version::http_1_1;
  if (text == "HTTP/1.0") return Version::http_1_0;
  return std::nullopt;
}

Result<Fields> parse_fields(std::string_view text) {
  Fields fields;
  while (true) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    if (fields.size() == field_count_max) {
      return fail(Errc::header_too_large,
                  "there are more than " + std::to_string(field_count_max) + " header fields");
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return wrong("a header field goes on in a second line", "write each field in one line");
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
      return wrong(in_quotes(line.substr(0, colon)) + " is not the name of a header field");
    }
    const std::string_view value = trimmed(line.substr(colon + 1), field_blanks);
    if (std::ranges::any_of(value, is_control)) {
      return wrong("the header field " + in_quotes(line.substr(0, colon)) +
                   " has a control character");
    }
    fields.add(std::string{line.substr(0, colon)}, std::string{value});
  }
  if (!text.empty()) return wrong("the head goes on behind its empty line");
  return fields;
}

// Fields that decide framing or routing must occur only once.
Result<> check_single(const Fields& fields) {
  for (const std::string_view name : {"host", "content-length", "transfer-encoding"}) {
    if (fields.count(name) > 1) {
      return wrong("the header field '" + std::string{name} + "' is given twice");
    }
    if (fields.connection_says(name)) {
      return wrong("the header field 'connection' names '" + std::string{name} + "'");
    }
  }
  return {};
}

// The framing that the fields state; empty if they state none.
Result<std::optional<Framing>> stated_framing(const Fields& fields, Version version) {
  BERTH_DO(check_single(fields));
  const auto length = fields.find("content-length");
  const auto coding = fields.find("transfer-encoding");
  if (coding) {
    if (length || version != Version::http_1_1 || !equal_ignoring_case(*coding, "chunked")) {
      return wrong("the header field 'transfer-encoding' is not accepted as given",
                   "send either a Content-Length or 'Transfer-Encoding: chunked' with HTTP/1.1");
    }
    return Framing{.kind = Framing::Kind::chunked};
  }
  if (!length) return std::nullopt;
  Framing framing{.kind = Framing::Kind::length};
  if (length->empty() || length->size() > length_digits_max ||
      !std::ranges::all_of(*length, is_digit)) {
    return wrong("the header field 'content-length' is not a number");
  }
  std::from_chars(length->data(), length->data() + length->size(), framing.length);
  if (framing.length == 0) framing.kind = Framing::Kind::none;
  return framing;
}

}  // namespace

void Fields::add(std::string name, std::string value) {
  list_.push_back({std::move(name), std::move(value)});
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  for (const Field& field : list_) {
    if (equal_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t Fields::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      list_, [&](const Field& field) { return equal_ignoring_case(field.name, name); }));
}

bool Fields::connection_says(std::string_view word) const {
  for (const Field& field : list_) {
    const bool about_connection = equal_ignoring_case(field.name, "connection") ||
                                  equal_ignoring_case(field.name, "proxy-connection");
    if (!about_connection) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (equal_ignoring_case(trimmed(rest.substr(0, comma), field_blanks), word)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

Fields Fields::end_to_end() const {
  constexpr std::array per_connection = {
      "connection", "keep-alive",     "proxy-connection",  "proxy-authorization",
      "te",         "trailer",        "transfer-encoding", "proxy-authenticate",
      "upgrade",    "content-length", "http2-settings"};
  Fields kept;
  for (const Field& field : list_) {
    const bool known = std::ranges::any_of(
        per_connection, [&](const char* name) { return equal_ignoring_case(field.name, name); });
    if (!known && !connection_says(field.name)) kept.add(field.name, field.value);
  }
  return kept;
}

Result<std::optional<std::size_t>> HeadEnd::find(std::string_view bytes) {
  while (true) {
    const std::size_t mark = bytes.find_first_of(std::string_view{"\r\n\0", 3}, seen_);
    seen_ = std::min(mark, bytes.size());
    if (mark == std::string_view::npos) return std::nullopt;
    const bool may_end = bytes[mark] == '\r';
    if (may_end && mark + 1 == bytes.size()) return std::nullopt;
    if (!may_end || bytes[mark + 1] != '\n') {
      return wrong("a line of the head does not end in CR and LF");
    }
    if (mark == 0) return wrong("the message begins with an empty line");
    if (mark == line_) return mark + 2;
    line_ = mark + 2;
    seen_ = line_;
  }
}

Result<RequestHead> parse_request_head(std::string_view text) {
  const std::string_view line = take_line(text);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return wrong("the request line is not made of method, target and version");
  }
  RequestHead head;
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  const auto version = parse_version(line.substr(last + 1));
  if (!version) return wrong("the version of HTTP is neither 1.1 nor 1.0");
  head.version = *version;
  if (!is_token(head.method)) return wrong("the method is not a token");
  const auto odd = [](char c) { return c <= ' ' || static_cast<unsigned char>(c) >= 0x7f; };
  if (head.target.empty() || std::ranges::any_of(head.target, odd)) {
    return wrong("the request target has characters that do not belong there",
                 "escape them with per cent signs");
  }
  BERTH_TRY(head.fields, parse_fields(text));
  return head;
}

Result<ResponseHead> parse_response_head(std::string_view text) {
  const std::string_view line = take_line(text);
  ResponseHead head;
  const auto version = parse_version(line.substr(0, 8));
  const std::string_view status = line.size() >= 12 ? line.substr(9, 3) : "";
  if (!version || status.empty() || line[8] != ' ' || !std::ranges::all_of(status, is_digit) ||
      (line.size() > 12 && line[12] != ' ')) {
    return wrong("the answer has no status line");
  }
  head.version = *version;
  std::from_chars(status.data(), status.data() + status.size(), head.status);
  if (head.status < 100) return wrong("the answer has no status line");
  head.reason = line.size() > 13 ? line.substr(13) : "";
  if (std::ranges::any_of(head.reason, is_control)) return wrong("the answer has no status line");
  BERTH_TRY(head.fields, parse_fields(text));
  return head;
}

Result<Framing> framing_of(const RequestHead& head) {
  BERTH_TRY(const std::optional<Framing> stated, stated_framing(head.fields, head.version));
  return stated.value_or(Framing{});
}

Result<Framing> framing_of(const ResponseHead& head, std::string_view method) {
  BERTH_TRY(const std::optional<Framing> stated, stated_framing(head.fields, head.version));
  const bool bare =
      method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304;
  if (bare) return Framing{};
  return stated.value_or(Framing{.kind = Framing::Kind::until_close});
}

bool BodyReader::done() const {
  switch (framing_.kind) {
    case Framing::Kind::none: return true;
    case Framing::Kind::length: return rest_ == 0;
    case Framing::Kind::chunked: return state_ == State::done;
    case Framing::Kind::until_close: return closed_;
  }
  return true;
}

Result<> BodyReader::end() {
  closed_ = true;
  if (done()) return {};
  return wrong("the body ends before its end");
}

Result<BodyPiece> BodyReader::take(std::string_view bytes) {
  if (done()) return BodyPiece{};
  switch (framing_.kind) {
    case Framing::Kind::none: return BodyPiece{};
    case Framing::Kind::length: return take_content(bytes);
    case Framing::Kind::chunked: return take_chunked(bytes);
    case Framing::Kind::until_close: return BodyPiece{.used = bytes.size(), .content = bytes};
  }
  return BodyPiece{};
}

BodyPiece BodyReader::take_content(std::string_view bytes) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), rest_));
  rest_ -= size;
  return {.used = size, .content = bytes.substr(0, size)};
}

Result<BodyPiece> BodyReader::take_chunked(std::string_view bytes) {
  if (state_ == State::content) {
    const BodyPiece piece = take_content(bytes);
    if (rest_ == 0) state_ = State::content_end;
    return piece;
  }
  // The line is checked before it is complete, so that a wrong line end is detected at once.
  const std::size_t mark = bytes.substr(0, chunk_line_bytes_max).find_first_of("\r\n");
  if (mark == std::string_view::npos) {
    if (bytes.size() >= chunk_line_bytes_max) return wrong("a line of a chunk is too long");
    if (state_ == State::content_end && !bytes.empty()) return wrong("a chunk is too long");
    return BodyPiece{};
  }
  if (bytes[mark] == '\n' || (mark + 1 < bytes.size() && bytes[mark + 1] != '\n')) {
    return wrong("a line of a chunk does not end in CR and LF");
  }
  if (mark + 1 == bytes.size()) return BodyPiece{};
  const std::string_view line = bytes.substr(0, mark);
  const std::size_t used = mark + 2;
  if (state_ == State::size) return take_size(line, used);
  if (state_ == State::content_end) {
    if (!line.empty()) return wrong("a chunk is too long");
    state_ = State::size;
    return BodyPiece{.used = used, .content = {}};
  }
  trailer_bytes_ += used;
  if (trailer_bytes_ > trailer_bytes_max) return wrong("the trailer is too long");
  if (line.empty()) state_ = State::done;
  return BodyPiece{.used = used, .content = {}};
}

Result<BodyPiece> BodyReader::take_size(std::string_view line, std::size_t used) {
  const std::string_view digits = line.substr(0, line.find(';'));
  const std::string_view extension = line.substr(digits.size());
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), rest_, 16);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  if (!whole || digits.size() > chunk_digits_max || std::ranges::any_of(extension, is_control)) {
    return wrong("a chunk has no size");
  }
  state_ = rest_ == 0 ? State::trailer : State::content;
  return BodyPiece{.used = used, .content = {}};
}

std::string chunk_head(std::size_t size) {
  std::array<char, 20> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16);
  return std::string{digits.data(), end} + "\r\n";
}

}  // namespace berth::egress
