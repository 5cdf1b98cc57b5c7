#include "cli/net/tls.hpp"

#include <openssl/ssl.h>

namespace berth::cli {

void trust_system(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_verify_paths(context);
}

void expect_host(SSL* tls, const std::string& host) {
  X509_VERIFY_PARAM* verify = SSL_get0_param(tls);
  if (X509_VERIFY_PARAM_set1_ip_asc(verify, host.c_str()) == 1) return;
  SSL_set1_host(tls, host.c_str());
  SSL_set_tlsext_host_name(tls, host.c_str());
}

}  // namespace berth::cli
