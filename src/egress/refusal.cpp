#include "egress/refusal.hpp"

#include "base/json/json.hpp"

#include <boost/json/serialize.hpp>

namespace berth::egress {
namespace {

std::string_view reason_of(unsigned status) {
  switch (status) {
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 504: return "Gateway Timeout";
    default: return "Bad Gateway";
  }
}

// The names from RFC 9209.
std::string_view proxy_error_of(unsigned status) {
  switch (status) {
    case 403: return "http_request_denied";
    case 429: return "connection_limit_reached";
    case 502: return "destination_unavailable";
    case 504: return "connection_timeout";
    default: return "http_request_error";
  }
}

// A structured-field string: printable ASCII, with quotes and backslashes escaped.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : clipped(text, 512)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c < 0x7f ? c : '?';
  }
  return out + "\"";
}

}  // namespace

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::bad_request:
    case Errc::validation_failed: return 400;
    case Errc::unauthenticated: return 401;
    case Errc::forbidden:
    case Errc::path_refused: return 403;
    case Errc::request_timed_out: return 408;
    case Errc::body_too_large: return 413;
    case Errc::overloaded: return 429;
    case Errc::header_too_large: return 431;
    case Errc::timed_out: return 504;
    default: return 502;
  }
}

std::string refusal_text(const Refusal& refusal, Persistence persistence, AnswerBody body) {
  const Error& error = refusal.error;
  bj::object json{{"error", as_utf8(error.message)}, {"code", name_of(error.code)}};
  if (!refusal.rule.empty()) json["rule"] = as_utf8(refusal.rule);
  if (!error.remedy.empty()) json["remedy"] = as_utf8(error.remedy);
  const std::string text = bj::serialize(json) + "\n";
  const unsigned status = status_of(error.code);
  const std::string details =
      error.remedy.empty() ? error.message : error.message + "; " + error.remedy;
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + std::string{reason_of(status)};
  out += "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(text.size());
  out += "\r\nProxy-Status: berth; error=" + std::string{proxy_error_of(status)} +
         "; details=" + quoted(details);
  out += persistence == Persistence::keep_alive ? "\r\nConnection: keep-alive\r\n\r\n"
                                                : "\r\nConnection: close\r\n\r\n";
  if (body == AnswerBody::present) out += text;
  return out;
}

}  // namespace berth::egress
