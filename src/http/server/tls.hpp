#pragma once

#include "base/result.hpp"
#include "http/server/server.hpp"

#include <boost/asio/ssl/context.hpp>

namespace berth::http {

// TLS 1.2 or newer with the given certificate and key files. Fails with config_invalid, naming the
// file.
Result<asio::ssl::context> make_tls_context(const Tls& files);

}  // namespace berth::http
