#pragma once

#include "http/route.hpp"
#include "http/server/message/reader.hpp"

namespace berth::http {

enum class Persistence { keep_alive, close };

// What a response needs besides itself.
struct Delivery {
  Head::Version version = Head::Version::http_1_1;
  Persistence persistence = Persistence::close;
  std::string_view path;        // of the request: caches must not store API responses
  std::string_view request_id;  // echoed, so that a client can name the request
  std::string_view date;
};

void append_field(std::string& out, std::string_view name, std::string_view value);
// Appends status line and header fields, the security fields among them, up to the empty line.
void append_head(std::string& out, const Response& response, const Delivery& delivery);
// The same for an event stream, whose body ends with the connection.
void append_event_head(std::string& out, const Delivery& delivery);
void append_event(std::string& out, const Event& event);

inline constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace berth::http
