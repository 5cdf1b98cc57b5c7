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

// Bytes that are no JSON, on their way to the server.
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
  std::optional<std::uint64_t> file_bytes = {};  // of all of a file, of which these may be a part
  bool is_whole = true;                          // there is nothing behind them
};

struct ClientLimits {
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds answer{60'000};
  std::chrono::milliseconds silence{120'000};  // of a stream, which sends comments to stay alive
  std::size_t body_bytes_max = std::size_t{64} << 20;
};

// A client of one server's HTTP API. An answer that is no success comes back as the Error that the
// server wrote; what is no answer of a Berth server is server_unreachable.
class Client {
 public:
  Client(Endpoint server, std::optional<Secret> token, ClientLimits limits = {});

  Result<Answer> send(const Request& request) const;
  Result<Bytes> transfer(const Transfer& wanted) const;
  // Follows a list from page to page, up to `limit` rows.
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

// The path of `rel="next"` in a Link header. Only the path is taken: a list never leads elsewhere.
std::optional<std::string> next_of(std::string_view link_header);
// The Error inside an answer that is no success.
Error error_of(unsigned status, std::string_view body);
// The cause that a name of the wire stands for; nothing when a newer server invented it.
std::optional<Errc> parse_errc(std::string_view name);
// A path segment or query value as a URL carries it.
std::string url_encoded(std::string_view text);

}  // namespace berth::cli
