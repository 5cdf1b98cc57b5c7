#include "http/server/message/writer.hpp"

#include <boost/beast/http/status.hpp>

namespace berth::http {
namespace {

void append_status_line(std::string& out, unsigned status, Head::Version version) {
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  out.append(version == Head::Version::http_1_1 ? "HTTP/1.1 " : "HTTP/1.0 ");
  out.append(std::to_string(status)).append(" ");
  out.append(reason.data(), reason.size()).append("\r\n");
}

void append_common_fields(std::string& out, const Delivery& delivery) {
  append_field(out, "Date", delivery.date);
  append_field(out, "X-Request-Id", delivery.request_id);
  out.append("X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n");
  if (delivery.persistence == Persistence::close) {
    out.append("Connection: close\r\n");
  } else if (delivery.version == Head::Version::http_1_0) {
    out.append("Connection: keep-alive\r\n");
  }
}

bool is_api(std::string_view path) {
  return path == "/api" || path.starts_with("/api/");
}

// An event field is one line; the format has no escape for a line break.
void append_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value) {
    if (c != '\r' && c != '\n' && c != '\0') out += c;
  }
  out += '\n';
}

}  // namespace

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  // A line break in a value would begin a field of its own.
  for (const char c : value) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
  out.append("\r\n");
}

void append_head(std::string& out, const Response& response, const Delivery& delivery) {
  append_status_line(out, response.status, delivery.version);
  append_common_fields(out, delivery);
  if (is_api(delivery.path) && !response.header("cache-control")) {
    out.append("Cache-Control: no-store\r\n");
  }
  if (!response.content_type.empty()) append_field(out, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) append_field(out, name, value);
  // RFC 9110: neither 204 nor 304 states the length of its missing body.
  if (response.status != 204 && response.status != 304) {
    append_field(out, "Content-Length", std::to_string(response.body.size()));
  }
  out.append("\r\n");
}

void append_event_head(std::string& out, const Delivery& delivery) {
  append_status_line(out, 200, delivery.version);
  append_common_fields(out, delivery);
  out.append(
      "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
      "X-Accel-Buffering: no\r\n\r\n");
}

void append_event(std::string& out, const Event& event) {
  if (!event.id.empty()) append_line(out, "id", event.id);
  if (!event.name.empty()) append_line(out, "event", event.name);
  std::string_view rest = event.data;
  while (true) {
    const std::size_t end = rest.find('\n');
    append_line(out, "data", rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  out += '\n';
}

}  // namespace berth::http
