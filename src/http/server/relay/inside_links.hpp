#pragma once

#include <optional>
#include <string>
#include <string_view>

// References in the head of an answer that a server inside a sandbox gives. The client reads them
// against the path under which this server serves that one.
namespace berth::http {

// Where the server inside is for the client.
struct InsidePlace {
  std::string_view prefix;  // of the path: what this server put before that of the server inside
  std::string_view path;    // that the server inside was asked for, beginning with '/'
  unsigned short port = 0;  // that it listens on
};

// A reference that leads to the server inside again, as the client has to read it. Nothing where it
// leads elsewhere, or where browsers do not agree on where it leads. Another origin would get a
// visitor, and from some programs their key, in the name of this server. Another path of this
// server would get a request with the rights of the client that follows.
std::optional<std::string> reference_inside(std::string_view reference, const InsidePlace& place);

// The same for each target of a `Link` field; nothing where one of them leads elsewhere.
std::optional<std::string> links_inside(std::string_view field, const InsidePlace& place);

}  // namespace berth::http
