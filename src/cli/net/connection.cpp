#include "cli/net/connection.hpp"

#include "cli/net/tls.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace berth::cli {
namespace {

struct AddressesKind {
  using Raw = addrinfo*;
  static Raw none() { return nullptr; }
  static void dispose(addrinfo* list) noexcept { ::freeaddrinfo(list); }
};
using Addresses = Owned<AddressesKind>;

struct TlsContextKind {
  using Raw = SSL_CTX*;
  static Raw none() { return nullptr; }
  static void dispose(SSL_CTX* context) noexcept { SSL_CTX_free(context); }
};
using TlsContext = Owned<TlsContextKind>;

std::string describe(int error_number) {
  std::array<char, 128> text{};
  return ::strerror_r(error_number, text.data(), text.size());
}

std::unexpected<Error> unreachable(const std::string& name, const std::string& why) {
  return fail(Errc::server_unreachable, "no Berth server answers at " + name + ": " + why,
              "start it with 'berth serve' or name it with --url");
}

std::string tls_reason() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  if (code == 0) return "the TLS stream broke";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

int milliseconds_until(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

Result<Addresses> resolve_name(const Endpoint& endpoint, const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (failed != 0) return unreachable(name, ::gai_strerror(failed));
  return Addresses{list};
}

}  // namespace

std::string Endpoint::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  const std::string name = v6 ? "[" + host + "]" : host;
  return port == (tls ? 443 : 80) ? name : name + ":" + std::to_string(port);
}

std::string Endpoint::url() const {
  return (tls ? "https://" : "http://") + authority() + prefix;
}

Result<Endpoint> parse_endpoint(std::string_view url) {
  const auto no = [&](const char* why) {
    return fail(Errc::config_invalid, "server address '" + std::string{url} + "': " + why,
                "write it as http://127.0.0.1:3100 or https://berth.example.org");
  };
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed) return no("is not a URL");
  if (parsed->scheme() != "http" && parsed->scheme() != "https") return no("is not http or https");
  if (parsed->host().empty()) return no("names no host");
  if (parsed->has_userinfo()) return no("carries a user name; tokens go in BERTH_TOKEN");
  if (parsed->has_query() || parsed->has_fragment()) return no("has a query or a fragment");
  Endpoint out{.tls = parsed->scheme() == "https", .host = parsed->host_address()};
  out.port = parsed->has_port() ? parsed->port_number() : out.tls ? 443 : 80;
  if (out.port == 0) return no("has no valid port");
  out.prefix = std::string{parsed->encoded_path()};
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
  return out;
}

void Connection::TlsFree::operator()(SSL* tls) const noexcept {
  SSL_free(tls);
}

Result<Connection> Connection::open(const Endpoint& endpoint, Deadline deadline) {
  const std::string name = endpoint.url();
  BERTH_TRY(const Addresses addresses, resolve_name(endpoint, name));
  std::string why = "no address";
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Fd socket{
        ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol)};
    if (!socket) {
      why = describe(errno);
      continue;
    }
    Connection made{std::move(socket), name};
    if (::connect(made.socket_.get(), at->ai_addr, at->ai_addrlen) != 0) {
      int failed = errno;
      if (failed == EINPROGRESS) {
        if (!made.wait(POLLOUT, deadline)) {
          why = "no answer in time";
          continue;
        }
        socklen_t size = sizeof failed;
        ::getsockopt(made.socket_.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
      }
      if (failed != 0) {
        why = describe(failed);
        continue;
      }
    }
    if (endpoint.tls) BERTH_DO(made.start_tls(endpoint.host, deadline));
    return made;
  }
  return unreachable(name, why);
}

Result<> Connection::start_tls(const std::string& host, Deadline deadline) {
  const TlsContext context{SSL_CTX_new(TLS_client_method())};
  if (!context) return unreachable(name_, tls_reason());
  trust_system(context.get());
  tls_.reset(SSL_new(context.get()));
  if (tls_ == nullptr) return unreachable(name_, tls_reason());
  expect_host(tls_.get(), host);
  SSL_set_fd(tls_.get(), socket_.get());
  while (true) {
    ERR_clear_error();
    const int result = SSL_connect(tls_.get());
    if (result == 1) return {};
    if (Result<> ready = wait_tls(result, deadline); !ready) {
      const long verdict = SSL_get_verify_result(tls_.get());
      if (verdict == X509_V_OK) return ready;
      return fail(
          Errc::server_unreachable,
          name_ + ": its certificate is not trusted: " + X509_verify_cert_error_string(verdict),
          "name the file of the certificate authority in SSL_CERT_FILE");
    }
  }
}

Result<> Connection::wait(short events, Deadline deadline) const {
  while (true) {
    pollfd poll{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = ::poll(&poll, 1, milliseconds_until(deadline));
    if (ready > 0) return {};
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return unreachable(name_, describe(errno));
    return fail(Errc::timed_out, name_ + ": no answer in time",
                "look at the server's log, or try again");
  }
}

Result<> Connection::wait_tls(int result, Deadline deadline) const {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ: return wait(POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE: return wait(POLLOUT, deadline);
    default: return unreachable(name_, tls_reason());
  }
}

Result<> Connection::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    std::size_t sent = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      const int result = SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &sent);
      if (result != 1) BERTH_DO(wait_tls(result, deadline));
    } else {
      const ssize_t result = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (result < 0 && errno == EAGAIN) {
        BERTH_DO(wait(POLLOUT, deadline));
      } else if (result < 0 && errno != EINTR) {
        return unreachable(name_, describe(errno));
      }
      sent = result > 0 ? static_cast<std::size_t>(result) : 0;
    }
    bytes.remove_prefix(sent);
  }
  return {};
}

Result<std::size_t> Connection::read(std::span<char> into, Deadline deadline) {
  while (true) {
    if (tls_ != nullptr) {
      std::size_t got = 0;
      ERR_clear_error();
      const int result = SSL_read_ex(tls_.get(), into.data(), into.size(), &got);
      if (result == 1) return got;
      if (SSL_get_error(tls_.get(), result) == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
      BERTH_DO(wait_tls(result, deadline));
      continue;
    }
    const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return unreachable(name_, describe(errno));
    BERTH_DO(wait(POLLIN, deadline));
  }
}

}  // namespace berth::cli
