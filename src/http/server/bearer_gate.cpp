#include "http/server/bearer_gate.hpp"

namespace berth::http {
namespace {

constexpr std::string_view bearer = "bearer ";

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

// The port behind the name, which host_name has checked.
std::string_view port_of(std::string_view authority, std::string_view scheme) {
  const std::size_t closed = authority.starts_with('[') ? authority.find(']') : 0;
  const std::size_t colon = authority.find(':', closed);
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view{} : authority.substr(colon + 1);
  if (!port.empty()) return port;
  return equal_ignoring_case(scheme, "https") ? "443" : "80";
}

bool is_one_of_names(const std::vector<std::string>& names, std::string_view host) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return equal_ignoring_case(name, host); });
}

}  // namespace

bool is_same_origin(std::string_view origin, std::string_view scheme, std::string_view authority) {
  const std::size_t end = origin.find("://");
  if (end == std::string_view::npos) return false;
  const std::string_view from = origin.substr(end + 3);
  const std::string_view name = host_name(from);
  return !name.empty() && equal_ignoring_case(origin.substr(0, end), scheme) &&
         equal_ignoring_case(name, host_name(authority)) &&
         port_of(from, scheme) == port_of(authority, scheme);
}

std::string_view host_name(std::string_view authority) {
  const bool is_literal = authority.starts_with('[');
  const std::size_t closed = is_literal ? authority.find(']') : 0;
  if (closed == std::string_view::npos) return {};
  const std::size_t colon = std::min(authority.find(':', closed), authority.size());
  const std::string_view port = authority.substr(std::min(colon + 1, authority.size()));
  const bool is_port =
      std::ranges::all_of(port, [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (!is_port) return {};
  if (!is_literal) return authority.substr(0, colon);
  return colon == closed + 1 ? authority.substr(1, closed - 1) : std::string_view{};
}

std::string_view cookie_value(std::string_view field, std::string_view name) {
  while (!field.empty()) {
    const std::size_t end = std::min(field.find(';'), field.size());
    std::string_view pair = field.substr(0, end);
    field.remove_prefix(std::min(end + 1, field.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

BearerGate::BearerGate(GateOptions options, engine::Tokens& tokens, engine::RunTokens& run_tokens)
    : options_(std::move(options)), tokens_(tokens), run_tokens_(run_tokens) {
  for (const char* loopback : {"localhost", "127.0.0.1", "::1"})
    options_.hosts.emplace_back(loopback);
}

bool BearerGate::is_our_page(std::string_view origin, std::string_view authority) const {
  const std::string_view name = host_name(authority);
  if (!is_one_of_names(options_.hosts, name)) return false;
  if (is_same_origin(origin, options_.is_tls ? "https" : "http", authority)) return true;
  return is_one_of_names(options_.proxied_hosts, name) &&
         is_same_origin(origin, "https", authority);
}

Result<> BearerGate::check_host(const Request& request) const {
  const auto host = request.headers.find("host");
  if (host && is_one_of_names(options_.hosts, host_name(*host))) return {};
  // A key cannot be sent by a foreign page, so in `authenticated` the name matters only for callers
  // without one.
  if (options_.mode == TrustMode::authenticated) return {};
  return fail(Errc::untrusted_host,
              "this server is not known as '" + std::string{host.value_or("")} + "'",
              "call it as localhost or 127.0.0.1, or add the name to allowed_hosts");
}

Result<> BearerGate::check_origin(const Request& request) const {
  const auto origin = request.headers.find("origin");
  if (!origin) return {};
  const auto host = request.headers.find("host");
  if (host && is_our_page(*origin, *host)) return {};
  return fail(Errc::untrusted_origin,
              "requests from the origin '" + std::string{*origin} + "' are not accepted",
              "open the page from this server's own address, or add its name to allowed_hosts");
}

Result<> BearerGate::check_user(const Request& request) const {
  if (!options_.operators) return {};
  constexpr auto remedy =
      "send a token, start the server with --mode authenticated, or have it trust every local user "
      "with --trusted-users all";
  if (!request.peer_user) {
    return fail(Errc::local_user_not_trusted,
                "the user at the other end of this connection cannot be determined, and only root "
                "and the server's own user need no token",
                remedy);
  }
  const std::vector<unsigned>& operators = *options_.operators;
  if (std::ranges::find(operators, *request.peer_user) != operators.end()) return {};
  return fail(Errc::local_user_not_trusted,
              "user " + std::to_string(*request.peer_user) +
                  " of this machine needs a token: only root and the server's own user, " +
                  std::to_string(operators.back()) + ", need none",
              remedy);
}

// A browser with an expired key is a caller without a key, so that the page can still be read and
// can report it.
Task<core::Caller> BearerGate::identify_browser(const Request& request) {
  const auto cookies = request.headers.find("cookie");
  const std::string key{cookie_value(cookies.value_or(""), session_cookie)};
  if (key.empty()) co_return core::Caller{};
  Result<core::Caller> caller = co_await tokens_.identify(key);
  if (!caller && caller.error().code == Errc::unauthenticated) co_return core::Caller{};
  co_return caller;
}

Task<core::Caller> BearerGate::identify(const Request& request) {
  BERTH_CO_DO(check_host(request));
  BERTH_CO_DO(check_origin(request));
  const auto authorization = request.headers.find("authorization");
  if (authorization) {
    if (!starts_with_ignoring_case(*authorization, bearer)) {
      co_return fail(Errc::unauthenticated, "the Authorization header is not a bearer token",
                     "send 'Authorization: Bearer TOKEN'");
    }
    std::string token{authorization->substr(bearer.size())};
    if (engine::is_run_token(token)) co_return co_await run_tokens_.identify(std::move(token));
    co_return co_await tokens_.identify(std::move(token));
  }
  if (options_.mode == TrustMode::authenticated) co_return co_await identify_browser(request);
  BERTH_CO_DO(check_user(request));
  co_return core::Caller{.kind = core::CallerKind::local_operator, .role = core::Role::admin};
}

}  // namespace berth::http
