#include "egress/request.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace berth::egress {
namespace {

constexpr std::uint16_t http_port = 80;
constexpr std::string_view via = "1.1 berth";

std::unexpected<Error> wrong_request(std::string message, std::string remedy = {}) {
  return fail(Errc::bad_request, std::move(message), std::move(remedy));
}

Result<Target> target_of(std::string_view authority, std::optional<std::uint16_t> default_port) {
  Result<Target> target = parse_target(authority, default_port);
  if (target) return target;
  return wrong_request("the target " + target.error().message, target.error().remedy);
}

// Host must match the target, or the upstream could take the request for another host's.
Result<> check_host(const RequestHead& head, const Target& target, bool tunnel) {
  const auto host = head.fields.find("host");
  if (!host && head.version == Version::http_1_0) return {};
  if (!host) return wrong_request("the request has no Host header");
  // Many clients omit the port from a CONNECT's Host; there the target alone decides.
  BERTH_TRY(const Target named, target_of(*host, tunnel ? target.port : http_port));
  if (named == target) return {};
  return wrong_request("the Host header names " + named.str() + " and the target " + target.str(),
                       "send the same host and port in both");
}

// The API sees exactly the path that is checked here: nothing is left for a server to resolve.
Result<> check_callback_path(std::string_view path) {
  const std::string_view plain = path.substr(0, path.find('?'));
  std::string lower{plain};
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  bool odd = false;
  for (const std::string_view part : {"//", "/./", "/../", "%2e", "%2f", "%5c", "%00", "\\", ";"}) {
    odd = odd || lower.contains(part);
  }
  if (!odd && !lower.ends_with("/..") && !lower.ends_with("/.") && plain.starts_with("/api/")) {
    return {};
  }
  return fail(Errc::path_refused, "the callback does not serve " + in_quotes(plain),
              "only paths below /api/ are reached by http://" + std::string{callback_name});
}

// The API may treat a local caller without a token as the operator of the machine, and our
// connection is local. So only requests with a token pass. This checks the outgoing fields: a token
// that Connection names has been removed by then.
Result<> check_token(const ProxyRequest& request) {
  constexpr std::string_view bearer = "Bearer ";
  // Any client may check the API's health.
  if (request.method == "GET" && request.path == "/api/health") return {};
  const Fields& fields = request.fields;
  const auto shown = fields.find("authorization");
  if (shown && fields.count("authorization") == 1 && shown->size() > bearer.size() &&
      equal_ignoring_case(shown->substr(0, bearer.size()), bearer)) {
    return {};
  }
  return fail(Errc::unauthenticated, "a request to the server's API needs one bearer token",
              "send 'Authorization: Bearer TOKEN' with the token of the run");
}

// Splits "http://host:port/path?query" into target and path.
Result<> split_absolute(std::string_view text, ProxyRequest& request) {
  constexpr std::string_view scheme = "http://";
  if (text.size() < scheme.size() || !equal_ignoring_case(text.substr(0, scheme.size()), scheme)) {
    if (text.size() >= 8 && equal_ignoring_case(text.substr(0, 8), "https://")) {
      return wrong_request("an https target does not go through a proxy in the clear",
                           "send CONNECT host:443 and speak TLS inside");
    }
    return wrong_request("the target " + in_quotes(text) + " is not an http:// URL",
                         "this is a forward proxy: send http://host/path, or CONNECT host:port");
  }
  text.remove_prefix(scheme.size());
  if (text.contains('#')) return wrong_request("the target has a fragment");
  const std::size_t end = std::min(text.find_first_of("/?\\"), text.size());
  BERTH_TRY(request.target, target_of(text.substr(0, end), http_port));
  request.path = text.substr(end);
  if (request.path.empty() || request.path.front() == '?') request.path.insert(0, "/");
  if (request.path.front() != '/') return wrong_request("the target has no path");
  return {};
}

Result<> understand_tunnel(const RequestHead& head, ProxyRequest& request) {
  request.kind = ProxyRequest::Kind::tunnel;
  BERTH_TRY(request.target, target_of(head.target, std::nullopt));
  BERTH_DO(check_host(head, request.target, true));
  if (request.body != Framing{}) return wrong_request("a CONNECT has no body");
  if (request.target.host == callback_name) {
    return fail(Errc::path_refused, "the callback is not reached by CONNECT",
                "send plain requests to http://" + std::string{callback_name} + "/api/...");
  }
  return {};
}

Result<> understand_forward(const RequestHead& head, Door door, ProxyRequest& request) {
  const Target own{.host = std::string{callback_name}, .address = {}, .port = http_port};
  const bool origin_form = head.target.starts_with('/');
  if (door == Door::callback && origin_form) {
    // The client may know this listener by any name.
    if (!head.fields.find("host") && head.version == Version::http_1_1) {
      return wrong_request("the request has no Host header");
    }
    if (head.target.contains('#')) return wrong_request("the target has a fragment");
    request.target = own;
    request.path = head.target;
  } else {
    BERTH_DO(split_absolute(head.target, request));
    BERTH_DO(check_host(head, request.target, false));
  }
  const bool names_callback = request.target.host == callback_name;
  if (!names_callback && door == Door::proxy) return {};
  if (request.target != own) {
    return fail(Errc::path_refused, request.target.str() + " is not served here",
                "the callback is http://" + std::string{callback_name} + "/api/...");
  }
  request.kind = ProxyRequest::Kind::callback;
  return check_callback_path(request.path);
}

void append_framing(std::string& out, const Framing& framing) {
  if (framing.kind == Framing::Kind::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (framing.kind != Framing::Kind::length) return;
  out += "Content-Length: " + std::to_string(framing.length) + "\r\n";
}

void append_fields(std::string& out, const Fields& fields) {
  for (const Field& field : fields) {
    out += field.name;
    out += ": ";
    out += field.value;
    out += "\r\n";
  }
}

}  // namespace

std::string_view ProxyRequest::path_without_query() const {
  return std::string_view{path}.substr(0, path.find('?'));
}

Result<ProxyRequest> understand(const RequestHead& head, Door door) {
  ProxyRequest request;
  request.method = head.method;
  request.version = head.version;
  BERTH_TRY(request.body, framing_of(head));
  const bool modern = head.version == Version::http_1_1;
  request.keeps_alive =
      modern ? !head.fields.connection_says("close") : head.fields.connection_says("keep-alive");
  if (head.method == "CONNECT") {
    if (door == Door::callback) return wrong_request("this listener takes no CONNECT");
    BERTH_DO(understand_tunnel(head, request));
    return request;
  }
  BERTH_DO(understand_forward(head, door, request));
  for (const Field& field : head.fields.end_to_end()) {
    if (!equal_ignoring_case(field.name, "host")) request.fields.add(field.name, field.value);
  }
  if (request.kind == ProxyRequest::Kind::callback) BERTH_DO(check_token(request));
  return request;
}

std::string upstream_head(const ProxyRequest& request, std::string_view host) {
  std::string out = request.method + " " + request.path + " HTTP/1.1\r\nHost: ";
  out += host;
  out += "\r\n";
  append_fields(out, request.fields);
  append_framing(out, request.body);
  // A method with content states its length even if it is empty.
  const bool writes = request.method == "POST" || request.method == "PUT";
  if (writes && request.body == Framing{}) out += "Content-Length: 0\r\n";
  out += "Via: " + std::string{via} + "\r\nConnection: close\r\n\r\n";
  return out;
}

std::string client_head(const ResponseHead& answer, const Framing& framing,
                        Persistence persistence) {
  std::string out = "HTTP/1.1 " + std::to_string(answer.status) + " " + answer.reason + "\r\n";
  append_fields(out, answer.fields.end_to_end());
  const bool interim = answer.status < 200;
  if (framing.kind == Framing::Kind::none && !interim && answer.status != 204) {
    // In a response to HEAD the length is what GET would send.
    const auto length = answer.fields.find("content-length");
    if (length) out += "Content-Length: " + std::string{*length} + "\r\n";
  }
  append_framing(out, framing);
  if (!interim) {
    out += "Via: " + std::string{via} + "\r\n";
    out += persistence == Persistence::keep_alive ? "Connection: keep-alive\r\n"
                                                  : "Connection: close\r\n";
  }
  return out + "\r\n";
}

}  // namespace berth::egress
