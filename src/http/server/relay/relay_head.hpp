#pragma once

#include "http/server/message/writer.hpp"

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

// The heads of a request that is passed on into a sandbox and of the answer that comes back. What
// answers there is hostile: it may be anybody's program, and a browser shows what it says under the
// name of this server.
namespace berth::http {

// A file from inside must never become a script, a style or a plugin of a page of this server,
// whose origin it shares by the path. Browsers say what they want it for; fails forbidden.
Result<> check_destination(const Request& request);

// Whether the client asks for a WebSocket. No other upgrade is passed on.
bool asks_for_websocket(const Request& request, const Head& head);

struct Forwarding {
  std::size_t prefix_bytes = 0;  // of the path: what the server inside does not see
  unsigned short port = 0;
};
// What the server inside gets as its own name.
std::string host_of(unsigned short port);
// What the server inside gets. Neither what authenticates the client at this server nor anything
// that is meant for one connection is in it; the body follows as the client frames it.
std::string forwarded_head(const Request& request, const Head& head, const Forwarding& forwarding);

// How the body of an answer travels to the client.
enum class Framing { none, length, chunks, until_close, tunnel };

struct AnswerFacts {
  Delivery delivery;
  Framing framing = Framing::until_close;
  std::string_view prefix;   // of the path, for references
  std::string_view path;     // that the server inside was asked for, for the same
  unsigned short port = 0;   // of the server inside, for the same
  std::uint64_t length = 0;  // of the body, where the framing is that
};
using AnswerHeader = boost::beast::http::response_header<>;
// Whether the body has a coding for the way that this server neither undoes nor passes on.
bool is_coded_for_the_way(const AnswerHeader& header);
// What the client gets of it.
std::string answer_head(const AnswerHeader& header, const AnswerFacts& facts);

}  // namespace berth::http
