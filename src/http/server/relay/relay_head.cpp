#include "http/server/relay/relay_head.hpp"

#include "http/server/message/writer.hpp"
#include "http/server/relay/inside_links.hpp"

#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace berth::http {
namespace {

using Names = std::span<const std::string_view>;

// RFC 9110, 7.6.1: hop-by-hop fields.
constexpr std::array<std::string_view, 10> hop_by_hop{"connection",
                                                      "keep-alive",
                                                      "proxy-authenticate",
                                                      "proxy-authorization",
                                                      "proxy-authentication-info",
                                                      "proxy-connection",
                                                      "te",
                                                      "trailer",
                                                      "transfer-encoding",
                                                      "upgrade"};

// Fields that authenticate the caller to this server, name its objects or identify the operator.
// With them, a server inside could call this server in the operator's name.
constexpr std::array<std::string_view, 16> kept_from_inside{
    "authorization",   "cookie",          "cookie2",          "host",
    "content-length",  "expect",          "referer",          "origin",
    "idempotency-key", "x-request-id",    "x-berth-run-id",   "x-paperclip-run-id",
    "forwarded",       "x-forwarded-for", "x-forwarded-host", "x-real-ip"};

// The response fields that the client gets: those that describe the content, and those of
// well-known application protocols. This is an allowlist, because attackers find what a denylist
// misses. Every year browsers and proxies get new fields that apply to the whole origin (cookies,
// policies, logins, caches) or control a proxy, and the origin and the proxy are this server's. A
// user who needs another field has `berth sandbox port`, where all fields pass.
constexpr std::array<std::string_view, 35> passes_to_client{"accept-patch",
                                                            "accept-post",
                                                            "accept-ranges",
                                                            "allow",
                                                            "content-digest",
                                                            "content-disposition",
                                                            "content-encoding",
                                                            "content-language",
                                                            "content-location",
                                                            "content-md5",
                                                            "content-range",
                                                            "content-type",
                                                            "dav",
                                                            "deprecation",
                                                            "digest",
                                                            "etag",
                                                            "expires",
                                                            "last-modified",
                                                            "link",
                                                            "location",
                                                            "lock-token",
                                                            "ms-author-via",
                                                            "preference-applied",
                                                            "ratelimit",
                                                            "repr-digest",
                                                            "retry-after",
                                                            "sec-websocket-accept",
                                                            "sec-websocket-extensions",
                                                            "sec-websocket-protocol",
                                                            "sec-websocket-version",
                                                            "server",
                                                            "server-timing",
                                                            "sunset",
                                                            "vary",
                                                            "warning"};
constexpr std::array<std::string_view, 8> passing_families{
    "x-", "docker-", "grpc-", "hx-", "mcp-", "tus-", "ratelimit-", "upload-"};

// Custom field prefixes that do not pass: nginx, lighttpd, LiteSpeed, Envoy and others obey them,
// they identify a user, they apply to an origin, or this server sets them itself.
constexpr std::array<std::string_view, 7> steering_families{
    "x-accel-",    "x-berth-",     "x-envoy-",  "x-forwarded-",
    "x-lighttpd-", "x-litespeed-", "x-sendfile"};
constexpr std::array<std::string_view, 14> steering{"hx-location",
                                                    "hx-redirect",
                                                    "x-content-security-policy",
                                                    "x-content-type-options",
                                                    "x-original-url",
                                                    "x-paperclip-run-id",
                                                    "x-permitted-cross-domain-policies",
                                                    "x-real-ip",
                                                    "x-reproxy-expected-size",
                                                    "x-reproxy-url",
                                                    "x-request-id",
                                                    "x-rewrite-url",
                                                    "x-sourcemap",
                                                    "x-webkit-csp"};

// Fields that hold a reference: it leads to the server inside, or the field does not pass.
constexpr std::array<std::string_view, 2> references{"content-location", "location"};
// Names a field that was withheld because of where it leads.
constexpr std::string_view withheld = "X-Berth-Withheld";

// A page from inside gets its own origin and runs no script: with this server's origin, a script
// could call the API as the user who views the page. A user who needs the page has `berth sandbox
// port`, where the page has the origin of its own port.
constexpr std::string_view confinement =
    "Content-Security-Policy: sandbox\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n";

std::string_view std_view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_among(std::string_view name, Names names) {
  return std::ranges::any_of(names,
                             [&](std::string_view one) { return equal_ignoring_case(one, name); });
}

bool is_of(std::string_view name, Names families) {
  return std::ranges::any_of(families, [&](std::string_view family) {
    return equal_ignoring_case(name.substr(0, family.size()), family);
  });
}

bool is_forwarded(std::string_view name) {
  constexpr std::array<std::string_view, 1> family{"x-forwarded-"};
  return is_of(name, family);
}

bool is_for_client(std::string_view name) {
  if (is_among(name, passes_to_client)) return true;
  return is_of(name, passing_families) && !is_of(name, steering_families) &&
         !is_among(name, steering);
}

bool lists(std::string_view field, std::string_view token) {
  return boost::beast::http::token_list{{field.data(), field.size()}}.exists(
      {token.data(), token.size()});
}

// What the sender named in its Connection fields, of which there may be several.
std::string named_for_connection(const Request& request) {
  std::string names;
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const auto [field, value] = request.headers.at(i);
    if (equal_ignoring_case(field, "connection")) names.append(value).append(", ");
  }
  return names;
}

// A response field as the client gets it; nothing if it leads away from the server inside.
std::optional<std::string> for_client(std::string_view name, std::string_view value,
                                      const AnswerFacts& facts) {
  const InsidePlace place{.prefix = facts.prefix, .path = facts.path, .port = facts.port};
  if (equal_ignoring_case(name, "link")) return links_inside(value, place);
  if (is_among(name, references)) return reference_inside(value, place);
  return std::string{value};
}

}  // namespace

Result<> check_destination(const Request& request) {
  // Destinations that only show or fetch a file. Any other destination runs it, or may do so one
  // day.
  constexpr std::array<std::string_view, 10> harmless{"audio", "document", "empty", "font",
                                                      "frame", "iframe",   "image", "track",
                                                      "video", "websocket"};
  const auto destination = request.headers.find("sec-fetch-dest");
  if (!destination || is_among(*destination, harmless)) return {};
  return fail(
      Errc::forbidden,
      request.path + " is a file of a sandbox: a page of this server cannot use it as '" +
          std::string{destination->substr(0, 32)} + "'",
      "open the sandbox's page with 'berth sandbox port', where it has an origin of its own");
}

bool asks_for_websocket(const Request& request, const Head& head) {
  const bool is_get = head.method == Head::Method::as_verb && request.verb == Verb::get;
  return is_get && head.version == Head::Version::http_1_1 &&
         lists(named_for_connection(request), "upgrade") &&
         lists(request.headers.find("upgrade").value_or(""), "websocket");
}

std::string host_of(unsigned short port) {
  return "localhost:" + std::to_string(port);
}

std::string forwarded_head(const Request& request, const Head& head, const Forwarding& forwarding) {
  const std::string origin = host_of(forwarding.port);
  const std::size_t query = std::min(head.target.find('?'), head.target.size());
  const std::string named = named_for_connection(request);
  std::string out = head.method_text + " " + request.path.substr(forwarding.prefix_bytes) +
                    head.target.substr(query) + " HTTP/1.1\r\n";
  append_field(out, "Host", origin);
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const auto [name, value] = request.headers.at(i);
    const bool is_kept = is_among(name, hop_by_hop) || is_among(name, kept_from_inside) ||
                         lists(named, name) || is_forwarded(name);
    if (!is_kept) append_field(out, name, value);
  }
  // Servers that check their callers compare it with their own name.
  if (request.headers.find("origin")) append_field(out, "Origin", "http://" + origin);
  append_field(out, "X-Forwarded-Prefix", request.path.substr(0, forwarding.prefix_bytes));
  if (asks_for_websocket(request, head)) {
    append_field(out, "Connection", "Upgrade");
    append_field(out, "Upgrade", "websocket");
  } else {
    append_field(out, "Connection", "close");
    if (const auto length = request.headers.find("content-length")) {
      append_field(out, "Content-Length", *length);
    }
    if (request.headers.find("transfer-encoding")) {
      append_field(out, "Transfer-Encoding", "chunked");
    }
  }
  return out.append("\r\n");
}

bool is_coded_for_the_way(const AnswerHeader& header) {
  const auto [begin, end] = header.equal_range(boost::beast::http::field::transfer_encoding);
  return std::any_of(begin, end, [](const auto& field) {
    return !equal_ignoring_case(std_view(field.value()), "chunked");
  });
}

std::string answer_head(const AnswerHeader& header, const AnswerFacts& facts) {
  const auto reason = std_view(boost::beast::http::obsolete_reason(header.result()));
  const bool is_modern = facts.delivery.version == Head::Version::http_1_1;
  std::string out = (is_modern ? "HTTP/1.1 " : "HTTP/1.0 ") + std::to_string(header.result_int()) +
                    " " + std::string{reason} + "\r\n";
  const std::string named{std_view(header[boost::beast::http::field::connection])};
  for (const auto& field : header) {
    const std::string_view name = std_view(field.name_string());
    if (!is_for_client(name) || lists(named, name)) continue;
    const auto value = for_client(name, std_view(field.value()), facts);
    append_field(out, value ? name : withheld, value ? *value : std::string{name});
  }
  append_field(out, "Date", facts.delivery.date);
  append_field(out, "X-Request-Id", facts.delivery.request_id);
  out.append(confinement);
  switch (facts.framing) {
    case Framing::length: append_field(out, "Content-Length", std::to_string(facts.length)); break;
    case Framing::chunks: append_field(out, "Transfer-Encoding", "chunked"); break;
    case Framing::tunnel: append_field(out, "Upgrade", "websocket"); break;
    case Framing::none:
    case Framing::until_close: break;
  }
  append_field(out, "Connection", facts.framing == Framing::tunnel ? "Upgrade" : "close");
  return out.append("\r\n");
}

}  // namespace berth::http
