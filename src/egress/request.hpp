#pragma once

#include "egress/message.hpp"
#include "egress/target.hpp"

namespace berth::egress {

// Through which listener a request came.
enum class Door {
  proxy,        // a forward proxy: CONNECT and http://host/path
  callback,     // the server's own API: /api/...
  transparent,  // whatever the client sends goes to the address that it connected to
};

// What a client of the proxy asks for, with nothing left that two readers could understand
// differently.
struct ProxyRequest {
  enum class Kind { tunnel, forward, callback };

  Kind kind = Kind::forward;
  std::string method;
  Target target;     // for a callback, the reserved name
  std::string path;  // with its query; empty for a tunnel
  Version version = Version::http_1_1;
  Framing body;
  bool keeps_alive = true;  // the client would send another request on this connection
  Fields fields;            // end to end, without Host

  // The path without its query, which may hold secrets.
  std::string_view path_without_query() const;
};

// Fails bad_request with what is wrong, path_refused where a callback leaves /api/, or
// unauthenticated where it shows no token.
Result<ProxyRequest> understand(const RequestHead& head, Door door);

// The head that goes to the upstream; `host` is the value of its Host field. One request per
// upstream connection.
std::string upstream_head(const ProxyRequest& request, std::string_view host);

// The head that goes to the client. The framing is the one the body will be sent in.
enum class Persistence { keep_alive, close };
std::string client_head(const ResponseHead& answer, const Framing& framing,
                        Persistence persistence);

}  // namespace berth::egress
