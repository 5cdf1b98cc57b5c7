#include "engine/plugins/outbound_fetch.hpp"

#include "base/strings.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <algorithm>
#include <cctype>

namespace berth::engine {
namespace {

namespace beast = boost::beast;
namespace bh = beast::http;
using asio::ip::tcp;
using Plain = beast::tcp_stream;
using Tls = beast::ssl_stream<beast::tcp_stream>;

constexpr auto as_tuple = asio::as_tuple(asio::use_awaitable);
// Headers that control framing and routing are set only by us.
constexpr std::string_view own_headers[] = {
    "host", "connection", "content-length", "transfer-encoding", "upgrade", "proxy-authorization"};

bool is_clean(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::unexpected<Error> failed(const std::string& host, const boost::system::error_code& error) {
  if (error == beast::error::timeout) {
    return fail(Errc::timed_out, "http.fetch: " + host + " took too long to answer");
  }
  if (error == bh::error::body_limit || error == bh::error::header_limit ||
      error == bh::error::buffer_overflow) {
    return fail(Errc::body_too_large, "http.fetch: the answer of " + host + " is too large");
  }
  return fail(Errc::server_unreachable, "http.fetch: " + host + ": " + error.message());
}

asio::ip::address to_asio(const egress::Address& address) {
  return asio::ip::make_address(address.str());
}

template <class Stream>
Task<FetchAnswer> converse(Stream& stream, const bh::request<bh::string_body>& request,
                           const std::string& host, const FetchLimits& limits) {
  const auto [write_error, written] = co_await bh::async_write(stream, request, as_tuple);
  if (write_error) co_return failed(host, write_error);
  beast::flat_buffer buffer;
  bh::response_parser<bh::string_body> parser;
  parser.body_limit(limits.answer_bytes_max);
  parser.header_limit(limits.header_bytes_max);
  if (request.method() == bh::verb::head) parser.skip(true);
  const auto [read_error, read] = co_await bh::async_read(stream, buffer, parser, as_tuple);
  if (read_error) co_return failed(host, read_error);
  auto answer = parser.release();
  FetchAnswer out{.status = answer.result_int(), .status_text = std::string{answer.reason()}};
  for (const auto& field : answer) {
    std::string& value = out.headers[lower(field.name_string())];
    if (!value.empty()) value += ", ";
    value += field.value();
  }
  out.body = std::move(answer.body());
  co_return out;
}

}  // namespace

struct OutboundFetch::Target {
  bool tls = false;
  std::string host;  // without brackets
  std::uint16_t port = 0;
  bh::request<bh::string_body> message = {};
};

OutboundFetch::OutboundFetch(asio::any_io_executor executor, egress::Resolver& resolver,
                             std::vector<egress::Range> allowed, FetchLimits limits)
    : executor_(std::move(executor)),
      resolver_(resolver),
      special_(egress::addresses_that_are_not_public()),
      allowed_(std::move(allowed)),
      limits_(limits) {}

Result<OutboundFetch::Target> OutboundFetch::parse(const FetchRequest& request) {
  const auto wrong = [](const std::string& why) {
    return fail(Errc::validation_failed, "http.fetch: " + why,
                "send an absolute http or https URL");
  };
  const auto url = boost::urls::parse_uri(request.url);
  if (!url) return wrong("the URL cannot be read");
  if (url->scheme() != "http" && url->scheme() != "https") {
    return wrong("'" + std::string{url->scheme()} + "' is not http or https");
  }
  if (url->has_userinfo()) return wrong("the URL carries credentials");
  Target out{.tls = url->scheme() == "https", .host = url->host_address()};
  if (out.host.empty()) return wrong("the URL names no host");
  out.port = url->has_port() ? url->port_number() : out.tls ? 443 : 80;
  if (out.port == 0) return wrong("the URL has no valid port");
  const bh::verb method = bh::string_to_verb(request.method);
  if (method == bh::verb::unknown || method == bh::verb::connect) {
    return wrong("the method '" + request.method + "' is not allowed");
  }
  std::string path{url->encoded_path()};
  if (path.empty()) path = "/";
  if (url->has_query()) path += "?" + std::string{url->encoded_query()};
  out.message = {method, path, 11};
  for (const auto& [name, value] : request.headers) {
    if (!is_clean(name) || !is_clean(value) || name.empty()) return wrong("a header is malformed");
    if (std::ranges::find(own_headers, lower(name)) == std::end(own_headers)) {
      out.message.insert(name, value);
    }
  }
  out.message.set(bh::field::host, url->encoded_host_and_port());
  out.message.set(bh::field::connection, "close");
  out.message.body() = request.body;
  out.message.prepare_payload();
  return out;
}

Result<> OutboundFetch::check(const std::string& host,
                              const std::vector<egress::Address>& addresses) const {
  for (const egress::Address& address : addresses) {
    const auto holds = [&](const egress::Range& range) { return range.contains(address); };
    if (std::ranges::any_of(allowed_, holds)) continue;
    const auto special = std::ranges::find_if(
        special_, [&](const egress::SpecialRange& one) { return holds(one.range); });
    if (special == special_.end()) continue;
    return fail(Errc::forbidden,
                "http.fetch: " + host + " is " + special->name + " (" + address.str() +
                    "), which plugins may not reach",
                "name a host of the public internet");
  }
  return {};
}

Task<std::vector<egress::Address>> OutboundFetch::addresses_of(std::string host) {
  if (const auto literal = egress::Address::parse(host)) {
    co_return std::vector<egress::Address>{*literal};
  }
  // Some resolvers treat such names as addresses: 0x7f.1, 2130706433.
  const bool numeric = !host.empty() && std::isdigit(static_cast<unsigned char>(host.back())) != 0;
  if (numeric || host.contains(':')) {
    co_return fail(Errc::forbidden,
                   "http.fetch: '" + host + "' is neither a name nor a plain address");
  }
  co_return co_await resolver_.resolve(std::move(host));
}

Task<FetchAnswer> OutboundFetch::send(const Target& target, const egress::Address& address) const {
  const tcp::endpoint where{to_asio(address), target.port};
  if (!target.tls) {
    Plain stream{executor_};
    stream.expires_after(limits_.timeout);
    const auto [error] = co_await stream.async_connect(where, as_tuple);
    if (error) co_return failed(target.host, error);
    co_return co_await converse(stream, target.message, target.host, limits_);
  }
  asio::ssl::context context{asio::ssl::context::tls_client};
  boost::system::error_code error;
  context.set_default_verify_paths(error);
  context.set_verify_mode(asio::ssl::verify_peer, error);
  Tls stream{executor_, context};
  stream.set_verify_callback(asio::ssl::host_name_verification{target.host}, error);
  if (error) co_return failed(target.host, error);
  if (!egress::Address::parse(target.host)) {
    SSL_set_tlsext_host_name(stream.native_handle(), target.host.c_str());
  }
  beast::get_lowest_layer(stream).expires_after(limits_.timeout);
  const auto [connect_error] =
      co_await beast::get_lowest_layer(stream).async_connect(where, as_tuple);
  if (connect_error) co_return failed(target.host, connect_error);
  const auto [shake_error] =
      co_await stream.async_handshake(asio::ssl::stream_base::client, as_tuple);
  if (shake_error) co_return failed(target.host, shake_error);
  co_return co_await converse(stream, target.message, target.host, limits_);
}

Task<FetchAnswer> OutboundFetch::fetch(FetchRequest request) {
  if (request.body.size() > limits_.request_bytes_max) {
    co_return fail(Errc::body_too_large, "http.fetch: the request's body is too large");
  }
  if (in_flight_ >= limits_.in_flight_max) {
    co_return fail(Errc::overloaded, "http.fetch: too many requests are under way");
  }
  BERTH_CO_TRY(const Target target, parse(request));
  ++in_flight_;
  struct Done {
    std::size_t& count;
    ~Done() { --count; }
  } const done{in_flight_};
  BERTH_CO_TRY(const std::vector<egress::Address> addresses, co_await addresses_of(target.host));
  if (addresses.empty()) {
    co_return fail(Errc::server_unreachable, "http.fetch: " + target.host + " has no address");
  }
  BERTH_CO_DO(check(target.host, addresses));
  co_return co_await send(target, addresses.front());
}

}  // namespace berth::engine
