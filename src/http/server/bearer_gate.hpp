#pragma once

#include "engine/accounts/tokens.hpp"
#include "engine/runs/run_tokens.hpp"
#include "http/gate.hpp"

#include <string>
#include <vector>

namespace berth::http {

BOOST_DEFINE_ENUM_CLASS(TrustMode, local_trusted, authenticated)

struct GateOptions {
  TrustMode mode = TrustMode::local_trusted;
  std::vector<std::string> hosts;  // names, without port, that a Host header may contain
  // Those that a proxy may serve with TLS although this server does not use it.
  std::vector<std::string> proxied_hosts = {};
  bool is_tls = false;
  // Local users that are the operator in `local_trusted`; absent: all of them.
  std::optional<std::vector<unsigned>> operators = {};
};

// Identifies the caller. In `local_trusted` a caller without a key is the operator at this machine,
// so two callers must not pass for one: a page of another site in the operator's browser (Origin),
// and a foreign name that resolves to loopback (Host). Both are checked in every mode. Another user
// of the machine is not the operator either: the kernel reports which user holds the connection. A
// cookie counts only in `authenticated` and only without a header; it is SameSite, and its Origin
// is checked like any other.
class BearerGate final : public Gate {
 public:
  BearerGate(GateOptions options, engine::Tokens& tokens, engine::RunTokens& run_tokens);
  Task<core::Caller> identify(const Request& request) override;

 private:
  Task<core::Caller> identify_browser(const Request& request);
  Result<> check_host(const Request& request) const;
  Result<> check_origin(const Request& request) const;
  Result<> check_user(const Request& request) const;
  bool is_our_page(std::string_view origin, std::string_view authority) const;

  GateOptions options_;
  engine::Tokens& tokens_;
  engine::RunTokens& run_tokens_;
};

// The cookie in which a signed-in browser sends its key; see routes/session.cpp.
inline constexpr std::string_view session_cookie = "berth_session";
// The value of a cookie in a Cookie field; empty when there is no such cookie.
std::string_view cookie_value(std::string_view field, std::string_view name);

// Whether an Origin has this scheme and authority: scheme, host and port must be equal. A missing
// port is the scheme's default port.
bool is_same_origin(std::string_view origin, std::string_view scheme, std::string_view authority);

// "localhost:3100" is localhost, "[::1]:3100" is ::1; empty if an invalid port follows.
std::string_view host_name(std::string_view authority);

}  // namespace berth::http
