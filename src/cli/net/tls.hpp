#pragma once

#include <openssl/types.h>

#include <string>

// What a server must prove before the client talks to it.
namespace berth::cli {

// A certificate from an authority that this system trusts, over TLS 1.2 or newer.
void trust_system(SSL_CTX* context);
// The certificate is for this host. A name is checked as a name and sent as SNI; an address is
// checked as an address.
void expect_host(SSL* tls, const std::string& host);

}  // namespace berth::cli
