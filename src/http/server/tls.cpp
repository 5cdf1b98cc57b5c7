#include "http/server/tls.hpp"

#include "base/files.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

namespace berth::http {
namespace {

constexpr std::size_t pem_bytes_max = 1024UL * 1024;

// Reading the file ourselves distinguishes "missing" from "not PEM", which OpenSSL does not.
Result<std::string> read_pem(const std::string& path, const std::string& noun) {
  Result<std::string> pem = read_file(path, pem_bytes_max);
  if (pem) return pem;
  return fail(Errc::config_invalid, noun + " " + path + ": " + pem.error().message,
              "name a PEM file that the server may read");
}

std::unexpected<Error> unusable(const std::string& noun, const std::string& path,
                                const std::string& why, std::string remedy) {
  return fail(Errc::config_invalid, noun + " " + path + ": " + why, std::move(remedy));
}

}  // namespace

Result<asio::ssl::context> make_tls_context(const Tls& files) {
  BERTH_TRY(const std::string cert, read_pem(files.cert_file, "certificate"));
  BERTH_TRY(const std::string key, read_pem(files.key_file, "key"));

  asio::ssl::context context{asio::ssl::context::tls_server};
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.native_handle(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);

  boost::system::error_code error;
  // Without a callback OpenSSL would ask for the passphrase on the terminal and wait.
  context.set_password_callback([](std::size_t, auto) { return std::string{}; }, error);
  context.use_certificate_chain(asio::buffer(cert), error);
  if (error) {
    return unusable("certificate", files.cert_file, "is not a PEM certificate",
                    "give the server's certificate, followed by those above it, as PEM");
  }
  context.use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
  // OpenSSL compares the key with the certificate as soon as it has read it.
  if (ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH ||
      (!error && SSL_CTX_check_private_key(context.native_handle()) != 1)) {
    return unusable("key", files.key_file, "does not fit certificate " + files.cert_file,
                    "give the key that the certificate was made with");
  }
  if (error) {
    return unusable("key", files.key_file, "is not a PEM private key, or has a passphrase",
                    "give the certificate's private key as PEM without a passphrase");
  }
  return context;
}

}  // namespace berth::http
