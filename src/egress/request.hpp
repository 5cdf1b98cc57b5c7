#pragma once

#include "egress/message.hpp"
#include "egress/target.hpp"

namespace berth::egress {

// The listener through which a request came.
enum class Door {
  proxy,        // a forward proxy: CONNECT and http://host/path
  callback,     // the server's own API: /api/...
  transparent,  // all bytes go to the address that the client connected to
};

// What a client of the proxy requests, without anything that two readers could understand
// differently.
struct ProxyRequest {
  enum class Kind { tunnel, forward, callback };

  Kind kind = Kind::forward;
  std::string method;
  Target target;     // for a callback, the reserved name
  std::string path;  // with its query; empty for a tunnel
  Version version = Version::http_1_1;
  Framing body;
  bool keeps_alive = true;  // the client may send another request on this connection
  Fields fields;            // end to end, without Host

  // The path without its query, which may contain secrets.
  std::string_view path_without_query() const;
};

// Fails bad_request with the reason, path_refused if a callback leaves /api/, or unauthenticated if
// it has no token.
Result<ProxyRequest> understand(const RequestHead& head, Door door);

// The head for the upstream; `host` is the value of its Host field. One request per upstream
// connection.
std::string upstream_head(const ProxyRequest& request, std::string_view host);

// The head for the client. `framing` is how the body will be sent.
enum class Persistence { keep_alive, close };
std::string client_head(const ResponseHead& answer, const Framing& framing,
                        Persistence persistence);

}  // namespace berth::egress
