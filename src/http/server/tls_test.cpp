#include "http/server/tls.hpp"

#include "base/files.hpp"
#include "http/endpoint.hpp"
#include "support/http.hpp"
#include "support/temporary_folder.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <filesystem>

namespace berth::http {
namespace {

using http_test::Client;
using http_test::request;
using http_test::TestServer;

template <class T, void (*Free)(T*)>
struct OpenSslKind {
  using Raw = T*;
  static Raw none() { return nullptr; }
  static void dispose(Raw raw) noexcept { Free(raw); }
};
using Key = Owned<OpenSslKind<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = Owned<OpenSslKind<X509, X509_free>>;
using ClientContext = Owned<OpenSslKind<SSL_CTX, SSL_CTX_free>>;
using ClientSession = Owned<OpenSslKind<SSL, SSL_free>>;

using tests::TemporaryFolder;

void write_pem(const std::string& path, auto write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(write(file), 1);
  std::fclose(file);
}

// A key and its self-signed certificate.
Tls make_files(const TemporaryFolder& folder, const std::string& name) {
  const Key key{EVP_EC_gen("P-256")};
  const Certificate certificate{X509_new()};
  X509* raw = certificate.get();
  ASN1_INTEGER_set(X509_get_serialNumber(raw), 1);
  X509_gmtime_adj(X509_getm_notBefore(raw), 0);
  X509_gmtime_adj(X509_getm_notAfter(raw), 3600);
  X509_set_pubkey(raw, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(raw, X509_get_subject_name(raw));
  EXPECT_GT(X509_sign(raw, key.get(), EVP_sha256()), 0);
  const Tls files{folder.file(name + ".crt"), folder.file(name + ".key")};
  write_pem(files.cert_file, [&](std::FILE* out) { return PEM_write_X509(out, raw); });
  write_pem(files.key_file, [&](std::FILE* out) {
    return PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

Task<bj::value> secure_hello(core::Call /*call*/, Input<None, None, None> /*input*/) {
  co_return bj::value("hello");
}

Task<> tick(core::Call /*call*/, Input<None, None, None> /*input*/,
            std::optional<std::string> /*last*/, EventSink& sink) {
  co_return co_await sink.send({.data = "tick"});
}

std::vector<Route> tls_routes() {
  constexpr auto open = core::Permission::open;
  return {Endpoint<None, None, None, bj::value>{
              .path = "/hello", .needs = open, .tag = "test", .says = "Test", .call = secure_hello},
          EventStream<None, None>{
              .path = "/events", .needs = open, .tag = "test", .says = "Test", .call = tick}};
}

class TlsTest : public testing::Test {
 protected:
  TlsTest() { SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr); }

  ClientSession connect(const Client& client) {
    SSL_CTX_load_verify_locations(context_.get(), files_.cert_file.c_str(), nullptr);
    ClientSession session{SSL_new(context_.get())};
    SSL_set_fd(session.get(), client.fd());
    return session;
  }
  static std::string read_some(const ClientSession& session) {
    std::array<char, 4096> chunk{};
    const int size = SSL_read(session.get(), chunk.data(), chunk.size());
    return {chunk.data(), static_cast<std::size_t>(std::max(size, 0))};
  }
  static std::string read_all(const ClientSession& session) {
    std::string all;
    for (std::string more = read_some(session); !more.empty(); more = read_some(session)) {
      all += more;
    }
    return all;
  }

  TemporaryFolder folder_;
  Tls files_ = make_files(folder_, "server");
  ClientContext context_{SSL_CTX_new(TLS_client_method())};
};

TEST_F(TlsTest, RequestsAreAnsweredOverTls) {
  TestServer server{tls_routes(), {}, files_};
  const Client client{server.port()};
  const ClientSession session = connect(client);
  ASSERT_EQ(SSL_connect(session.get()), 1) << ERR_error_string(ERR_get_error(), nullptr);
  const std::string twice = request("GET /hello") + request("GET /hello", "Connection: close\r\n");
  ASSERT_GT(SSL_write(session.get(), twice.data(), static_cast<int>(twice.size())), 0);
  const std::string all = read_all(session);
  EXPECT_TRUE(all.starts_with("HTTP/1.1 200 OK\r\n")) << all;
  EXPECT_TRUE(all.ends_with("\"hello\"")) << all;
  EXPECT_NE(all.find("HTTP/1.1 200 OK", 10), std::string::npos) << all;
  EXPECT_EQ(SSL_get_shutdown(session.get()), SSL_RECEIVED_SHUTDOWN) << "the end must be certain";
}

TEST_F(TlsTest, EventStreamsRunOverTls) {
  TestServer server{tls_routes(), {}, files_};
  const Client client{server.port()};
  const ClientSession session = connect(client);
  ASSERT_EQ(SSL_connect(session.get()), 1);
  const std::string ask = request("GET /events");
  ASSERT_GT(SSL_write(session.get(), ask.data(), static_cast<int>(ask.size())), 0);
  EXPECT_TRUE(read_all(session).ends_with("data: tick\n\n"));
}

TEST_F(TlsTest, OldProtocolsAndPlainTextAreTurnedAway) {
  TestServer server{tls_routes(), {}, files_};
  const Client old{server.port()};
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_1_VERSION);
  SSL_CTX_set_max_proto_version(context_.get(), TLS1_1_VERSION);
  SSL_CTX_set_security_level(context_.get(), 0);
  const ClientSession session = connect(old);
  EXPECT_NE(SSL_connect(session.get()), 1);
  Client plain{server.port()};
  EXPECT_EQ(plain.ask(request("GET /hello")).status, 0);
}

TEST_F(TlsTest, FilesThatDoNotServeAreNamedWithARemedy) {
  const Tls other = make_files(folder_, "other");
  ASSERT_TRUE(create_file(folder_.file("text"), "no PEM", 0600));
  struct Case {
    Tls files;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{folder_.file("absent"), files_.key_file}, "certificate " + folder_.file("absent")},
      {{files_.cert_file, folder_.file("absent")}, "key " + folder_.file("absent")},
      {{folder_.file("text"), files_.key_file}, "is not a PEM certificate"},
      {{files_.cert_file, folder_.file("text")}, "is not a PEM private key"},
      {{files_.cert_file, other.key_file}, "does not fit"},
  };
  for (const Case& wrong : cases) {
    const auto context = make_tls_context(wrong.files);
    ASSERT_FALSE(context) << wrong.says;
    EXPECT_EQ(context.error().code, Errc::config_invalid);
    EXPECT_TRUE(context.error().message.contains(wrong.says)) << context.error().message;
    EXPECT_FALSE(context.error().remedy.empty());
  }
  EXPECT_TRUE(make_tls_context(files_));
}

}  // namespace
}  // namespace berth::http
