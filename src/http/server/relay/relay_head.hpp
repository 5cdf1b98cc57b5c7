#pragma once

#include "http/server/message/writer.hpp"

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

// The heads of a request relayed into a sandbox and of its response. The server there is hostile:
// it may be any program, and a browser shows its output under this server's name.
namespace berth::http {

// A file from inside must never become a script, a style or a plugin of a page of this server,
// whose origin it shares. Browsers send the purpose of a request; fails with forbidden.
Result<> check_destination(const Request& request);

// Whether the client requests a WebSocket. No other upgrade is relayed.
bool asks_for_websocket(const Request& request, const Head& head);

struct Forwarding {
  std::size_t prefix_bytes = 0;  // length of the path prefix that the server inside does not see
  unsigned short port = 0;
};
// The Host value that the server inside gets.
std::string host_of(unsigned short port);
// The request head for the server inside. It contains neither the client's credentials for this
// server nor hop-by-hop fields; the body follows as the client frames it.
std::string forwarded_head(const Request& request, const Head& head, const Forwarding& forwarding);

// How a response body is sent to the client.
enum class Framing { none, length, chunks, until_close, tunnel };

struct AnswerFacts {
  Delivery delivery;
  Framing framing = Framing::until_close;
  std::string_view prefix;   // path prefix, for references
  std::string_view path;     // requested from the server inside, for references
  unsigned short port = 0;   // of the server inside, for references
  std::uint64_t length = 0;  // of the body, for Framing::length
};
using AnswerHeader = boost::beast::http::response_header<>;
// Whether the body has a transfer coding that this server neither decodes nor passes on.
bool is_coded_for_the_way(const AnswerHeader& header);
// The response head that the client gets.
std::string answer_head(const AnswerHeader& header, const AnswerFacts& facts);

}  // namespace berth::http
