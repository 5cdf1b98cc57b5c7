#pragma once

#include <optional>
#include <string>
#include <string_view>

// References in the response head of a server inside a sandbox. The client resolves them against
// the path under which this server serves that one.
namespace berth::http {

// Where the client finds the server inside.
struct InsidePlace {
  std::string_view prefix;  // the part of the path that this server put before the inner path
  std::string_view path;    // the path requested from the server inside, beginning with '/'
  unsigned short port = 0;  // the port it listens on
};

// A reference that leads back to the server inside, rewritten for the client. Nothing if it leads
// elsewhere, or if browsers disagree on where it leads. Another origin would get a visitor, and
// from some programs their key, in this server's name. Another path of this server would get a
// request with the rights of the client that follows it.
std::optional<std::string> reference_inside(std::string_view reference, const InsidePlace& place);

// The same for each target of a `Link` field; nothing if one of them leads elsewhere.
std::optional<std::string> links_inside(std::string_view field, const InsidePlace& place);

}  // namespace berth::http
