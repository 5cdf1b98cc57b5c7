// Identifies the page's user, and sets the cookie by which a browser sends its key. A WebSocket or
// an event stream cannot carry a header that the page chooses, and no script can read an HttpOnly
// cookie.
#include "http/binding.hpp"
#include "http/endpoint.hpp"
#include "http/routes/routes.hpp"
#include "http/server/bearer_gate.hpp"

namespace berth::http {
namespace {

// The sender has no key yet: room for a key and little else.
constexpr std::size_t sign_in_bytes_max = 4096;

struct SignIn {
  Secret key;
};
BOOST_DESCRIBE_STRUCT(SignIn, (), (key))

Response with_cookie(std::string_view key, std::string_view age, bool is_secure) {
  std::string cookie = std::string{session_cookie} + "=" + std::string{key} +
                       "; Path=/; HttpOnly; SameSite=Strict" + std::string{age};
  if (is_secure) cookie += "; Secure";
  return {.status = 204, .content_type = {}, .headers = {{"Set-Cookie", std::move(cookie)}}};
}

// The cookie lasts for the browser session; the key behind it lasts as long as it is valid.
Task<Response> sign_in(engine::Tokens& tokens, bool is_secure, SignIn wanted) {
  const std::string key{wanted.key.reveal()};
  BERTH_CO_DO(co_await tokens.identify(key));
  co_return with_cookie(key, "", is_secure);
}

Task<Response> sign_out(bool is_secure) {
  co_return with_cookie("", "; Max-Age=0", is_secure);
}

}  // namespace

std::vector<Route> session_routes(const api::Table& operations, engine::Tokens& tokens,
                                  const api::ServerFacts& facts) {
  using core::Permission;
  const bool is_secure = facts.is_tls;
  return {
      bind(operations, "session", {.path = "/api/session", .operation = "session.get"}),
      Endpoint<None, None, SignIn, Response>{
          .verb = Verb::post,
          .path = "/api/session",
          .needs = Permission::open,
          .tag = "session",
          .says = "Sign a browser in: its key becomes a cookie that no script can read",
          .status = 204,
          .body_bytes_max = sign_in_bytes_max,
          .call = [&tokens, is_secure](
                      core::Call /*call*/,
                      auto in) { return sign_in(tokens, is_secure, std::move(in.body)); }},
      Endpoint<None, None, None, Response>{
          .verb = Verb::delete_,
          .path = "/api/session",
          .needs = Permission::open,
          .tag = "session",
          .says = "Sign a browser out",
          .status = 204,
          .call = [is_secure](core::Call /*call*/, auto /*in*/) { return sign_out(is_secure); }},
  };
}

}  // namespace berth::http
