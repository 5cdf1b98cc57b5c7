#include "http/server/message/reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include <array>

namespace berth::http {
namespace {

namespace beast = boost::beast;

std::string_view text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

// Fields that two parsers could read differently if they came twice, or that a gate decides by.
constexpr std::array single_fields = {"host",         "content-length", "transfer-encoding",
                                      "content-type", "authorization",  "origin",
                                      "if-match",     "idempotency-key"};

Error syntax_error(const beast::error_code& error, const Limits& limits) {
  if (error == beast::http::error::header_limit) {
    return Error{Errc::header_too_large,
                 "the header is longer than " + std::to_string(limits.header_bytes_max) + " bytes",
                 "send fewer or shorter header fields"};
  }
  if (error == beast::http::error::body_limit) {
    return Error{Errc::body_too_large, "the body is longer than this route takes",
                 "send a smaller body"};
  }
  return Error{Errc::bad_request, "the request is not HTTP: " + error.message()};
}

std::string media_type(std::string_view field) {
  field = field.substr(0, field.find(';'));
  while (field.ends_with(' ') || field.ends_with('\t')) field.remove_suffix(1);
  std::string type{field};
  for (char& c : type) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return type;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

RequestReader::RequestReader(Request& request, const Limits& limits)
    : request_(request), limits_(limits) {
  request_.verb = Verb::get;
  request_.path.clear();
  request_.query.clear();
  request_.body.clear();
  request_.content_type.clear();
  request_.headers.clear();
  request_.request_id.clear();
  header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  body_limit(boost::none);  // limit_body() sets it once the route is known
  eager(false);
}

RequestReader::Stage RequestReader::stage() const {
  if (!is_header_done()) return Stage::head;
  return is_done() ? Stage::done : Stage::body;
}

Result<std::size_t> RequestReader::feed(std::string_view bytes) {
  std::size_t used = 0;
  if (!got_some()) {
    // Some clients end a body with an extra line break; it does not belong to any request.
    while (bytes.substr(used).starts_with("\r\n")) used += 2;
    if (bytes.substr(used) == "\r") return used;
  }
  const Stage before = stage();
  // A chunked body ends in "0\r\n\r\n", so fewer bytes never complete anything. Beast asserts that
  // a last chunk does not arrive in smaller pieces.
  const std::size_t least = before == Stage::body && chunked() ? 5 : 1;
  while (bytes.size() - used >= least && stage() == before && before != Stage::done) {
    BERTH_TRY(const std::size_t more, put_some(bytes.substr(used)));
    if (more == 0) break;
    used += more;
  }
  if (before == Stage::head) {
    // The head is consumed as a whole. Two parsers could read a folded line differently.
    const std::string_view head = bytes.substr(0, used);
    if (head.contains("\r\n ") || head.contains("\r\n\t")) {
      return fail(Errc::bad_request, "a header line begins with a blank: folded lines are refused",
                  "send each header field on one line");
    }
    head_bytes_ += used;
    if (head_bytes_ > limits_.header_bytes_max) {
      return std::unexpected(syntax_error(beast::http::error::header_limit, limits_));
    }
    if (stage() != Stage::head) BERTH_DO(check_head());
  } else if (used == 0 && bytes.size() >= limits_.header_bytes_max) {
    return fail(Errc::bad_request, "a chunk header or trailer is too long");
  }
  return used;
}

Result<std::size_t> RequestReader::put_some(std::string_view bytes) {
  beast::error_code error;
  const std::size_t used = put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error && error != beast::http::error::need_more) {
    return std::unexpected(syntax_error(error, limits_));
  }
  return used;
}

// Requests that two parsers on the path could read differently are rejected, never repaired.
Result<> RequestReader::check_head() {
  const Headers& headers = request_.headers;
  for (const std::string_view name : single_fields) {
    if (headers.count(name) > 1) {
      return fail(Errc::bad_request, "the header field '" + std::string{name} + "' is given twice");
    }
  }
  const bool modern = head_.version == Head::Version::http_1_1;
  if (modern && !headers.find("host")) {
    return fail(Errc::bad_request, "the request has no Host header");
  }
  const auto length = headers.find("content-length");
  if (length && !is_number(*length)) {
    return fail(Errc::bad_request, "the header field 'content-length' is not a number");
  }
  if (const auto coding = headers.find("transfer-encoding")) {
    if (!modern || length || !equal_ignoring_case(*coding, "chunked")) {
      return fail(Errc::bad_request, "the header field 'transfer-encoding' is not taken so",
                  "send either a Content-Length or 'Transfer-Encoding: chunked' with HTTP/1.1");
    }
  }
  if (const auto type = headers.find("content-type")) request_.content_type = media_type(*type);
  return {};
}

bool RequestReader::expects_continue() const {
  const auto expect = request_.headers.find("expect");
  return head_.version == Head::Version::http_1_1 && expect &&
         equal_ignoring_case(*expect, "100-continue");
}

std::optional<std::uint64_t> RequestReader::body_length() const {
  const auto length = content_length();
  return length ? std::optional{*length} : std::nullopt;
}

Result<> RequestReader::limit_body(std::size_t bytes_max) {
  const auto length = content_length();
  if (length && *length > bytes_max) {
    return fail(Errc::body_too_large,
                "the body has " + std::to_string(*length) + " bytes, this route takes " +
                    std::to_string(bytes_max),
                "send a smaller body");
  }
  body_limit(bytes_max);
  return {};
}

void RequestReader::on_request_impl(beast::http::verb verb, Text method, Text target, int version,
                                    Errors& /*error*/) {
  head_.version = version == 11 ? Head::Version::http_1_1 : Head::Version::http_1_0;
  head_.method_text = text_of(method);
  head_.target = text_of(target);
  head_.method = Head::Method::as_verb;
  switch (verb) {
    case beast::http::verb::get: request_.verb = Verb::get; break;
    case beast::http::verb::post: request_.verb = Verb::post; break;
    case beast::http::verb::put: request_.verb = Verb::put; break;
    case beast::http::verb::patch: request_.verb = Verb::patch; break;
    case beast::http::verb::delete_: request_.verb = Verb::delete_; break;
    case beast::http::verb::head: head_.method = Head::Method::head; break;
    default: head_.method = Head::Method::other; break;
  }
}

void RequestReader::on_response_impl(int /*code*/, Text /*reason*/, int /*version*/,
                                     Errors& /*error*/) {}

void RequestReader::on_field_impl(beast::http::field /*field*/, Text name, Text value,
                                  Errors& /*error*/) {
  // A trailer comes after the gate has decided by the header, so it is dropped.
  if (stage() == Stage::head) request_.headers.add(text_of(name), text_of(value));
}

void RequestReader::on_header_impl(Errors& /*error*/) {}

void RequestReader::on_body_init_impl(const boost::optional<std::uint64_t>& length,
                                      Errors& /*error*/) {
  // A declared length costs nothing: memory follows the bytes that arrived.
  constexpr std::uint64_t trusted_bytes = 16UL * 1024;
  if (length) request_.body.reserve(static_cast<std::size_t>(std::min(*length, trusted_bytes)));
  eager(true);
}

std::size_t RequestReader::on_body_impl(Text bytes, Errors& /*error*/) {
  request_.body.append(bytes.data(), bytes.size());
  return bytes.size();
}

void RequestReader::on_chunk_header_impl(std::uint64_t /*size*/, Text /*extensions*/,
                                         Errors& /*error*/) {}

std::size_t RequestReader::on_chunk_body_impl(std::uint64_t /*remain*/, Text bytes,
                                              Errors& /*error*/) {
  request_.body.append(bytes.data(), bytes.size());
  return bytes.size();
}

void RequestReader::on_finish_impl(Errors& /*error*/) {}

}  // namespace berth::http
