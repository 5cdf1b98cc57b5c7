#pragma once

#include "base/json/json.hpp"
#include "base/secret.hpp"
#include "base/time.hpp"
#include "cli/net/connection.hpp"
#include "cli/net/events.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace berth::cli {

struct Request {
  std::string method = "GET";
  std::string path;  // "/api/companies?limit=5"
  std::optional<bj::value> body = {};
  std::optional<std::string> if_match = {};
};

struct Answer {
  unsigned status = 0;
  bj::value body;
  std::optional<std::string> etag;
  std::optional<std::string> next;  // path of the next page of a list
};

// Bytes that are not JSON, to be sent to the server.
struct Transfer {
  std::string method = "GET";
  std::string path;
  std::string_view bytes = {};
};
struct Bytes {
  std::string bytes;
  std::string content_type;
  std::string mode;                              // of a file: "0644"
  std::optional<Time> mtime = {};                // of a file
  std::optional<std::uint64_t> file_bytes = {};  // size of the whole file, of which these bytes may
                                                 // be a part
  bool is_whole = true;                          // nothing follows them
};

struct ClientLimits {
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds answer{60'000};
  std::chrono::milliseconds silence{120'000};  // of a stream, which sends comments as keep-alives
  std::size_t body_bytes_max = std::size_t{64} << 20;
};

// A client of one server's HTTP API. An unsuccessful response is returned as the Error that the
// server wrote; anything but a Berth response is server_unreachable.
class Client {
 public:
  Client(Endpoint server, std::optional<Secret> token, ClientLimits limits = {});

  Result<Answer> send(const Request& request) const;
  Result<Bytes> transfer(const Transfer& wanted) const;
  // Reads a list page by page, up to `limit` rows.
  Result<bj::array> list(const std::string& path, std::int64_t limit) const;
  // Server-sent events until the server ends the stream or `take` returns false.
  Result<> follow(const std::string& path, const std::function<bool(const Event&)>& take) const;
  const Endpoint& server() const { return server_; }
  const std::optional<Secret>& token() const { return token_; }

 private:
  std::string head_of(const Request& request, std::string_view accept) const;

  Endpoint server_;
  std::optional<Secret> token_;
  ClientLimits limits_;
};

// The path of `rel="next"` in a Link header. Only the path is used: a list never leads to another
// server.
std::optional<std::string> next_of(std::string_view link_header);
// The Error inside an unsuccessful response.
Error error_of(unsigned status, std::string_view body);
// The error code for a wire name; nothing for a newer server's unknown code.
std::optional<Errc> parse_errc(std::string_view name);
// A path segment or query value, URL-encoded.
std::string url_encoded(std::string_view text);

}  // namespace berth::cli
