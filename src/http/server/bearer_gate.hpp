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
  std::vector<std::string> hosts;  // names, without port, that a Host header may carry
  // Those of them that a proxy may serve with TLS though this server speaks none.
  std::vector<std::string> proxied_hosts = {};
  bool is_tls = false;
  // Local users who are the operator in `local_trusted`; absent: all of them.
  std::optional<std::vector<unsigned>> operators = {};
};

// Decides who is calling. In `local_trusted` a caller without a key is the operator at this
// machine, so two things must not pass for one: a page of another site in the operator's browser
// (Origin), and a foreign name that resolves to loopback (Host). Both are checked in every mode.
// Nor is another user of the machine the operator: the kernel says who holds the connection. A
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

// The cookie in which a browser that has signed in brings its key; see routes/session.cpp.
inline constexpr std::string_view session_cookie = "berth_session";
// The value of a cookie in a Cookie field; empty when it has none of this name.
std::string_view cookie_value(std::string_view field, std::string_view name);

// Whether an Origin is that of this scheme and authority: scheme, host and port are the same, where
// a port that is left out is the usual one of the scheme.
bool is_same_origin(std::string_view origin, std::string_view scheme, std::string_view authority);

// "localhost:3100" is localhost, "[::1]:3100" is ::1; empty where behind it is no port.
std::string_view host_name(std::string_view authority);

}  // namespace berth::http
