#include "engine/templates/setup_terminals.hpp"

#include "base/digest.hpp"
#include "engine/journal.hpp"
#include "store/tokens.hpp"

#include <algorithm>

namespace berth::engine {
namespace {

constexpr std::int64_t ticket_ms = 5LL * 60 * 1000;
constexpr std::size_t tickets_max = 1000;
constexpr std::size_t token_bytes = 32;

std::unexpected<Error> no_ticket() {
  return fail(Errc::unauthenticated, "the token opens no terminal of this setup session",
              "ask for a new one: POST .../terminal-session-token");
}

}  // namespace

void SetupTerminals::forget_expired() {
  const Time now = services_.clock.now();
  std::erase_if(tickets_, [now](const auto& one) { return one.second.expires_at <= now; });
}

Task<SetupTerminalToken> SetupTerminals::issue(core::Call call, core::SetupSessionId session) {
  BERTH_CO_TRY(const SetupView view, co_await sessions_.get(call, session));
  if (!view.connection_payload) {
    co_return fail(Errc::conflict, "Setup session " + session.str() + " has no terminal: it is " +
                                       std::string{name_of(view.session.status)});
  }
  if (!view.connection_payload->websocket_path) {
    co_return fail(Errc::unprocessable,
                   "The provider of setup session " + session.str() + " lets people in by itself",
                   "use the command in its connectionPayload");
  }
  forget_expired();
  if (tickets_.size() >= tickets_max) {
    co_return fail(Errc::overloaded, "there are too many tickets to terminals",
                   "ask again in five minutes");
  }
  const Time now = services_.clock.now();
  const std::string path =
      "/api/environment-custom-image-setup-sessions/" + session.str() + "/terminal/ws";
  SetupTerminalToken made{.id = make_uuid(services_.random, now),
                          .token = random_base64url(services_.random, token_bytes),
                          .expires_at = std::min(now + ticket_ms, view.session.expires_at),
                          .setup_session_id = session,
                          .environment_id = view.session.environment_id,
                          .connection_type = view.connection_payload->type,
                          .websocket_path = path};
  made.websocket_path += "?terminalSessionId=" + made.id;
  const Entry entry{view.session.company_id,
                    "environment.custom_image_terminal_session_token.created",
                    "environment",
                    view.session.environment_id.str(),
                    {{"setupSessionId", session.str()}}};
  BERTH_CO_DO(co_await services_.store.write(
      [&](store::Session& s) { return record(s, services_, call, entry); }));
  tickets_.emplace(made.id, Ticket{.token_hash = sha256_hex(made.token),
                                   .session = session,
                                   .holder = call.who,
                                   .expires_at = made.expires_at});
  co_return made;
}

Result<> SetupTerminals::expect(const core::SetupSessionId& session, const std::string& id) {
  forget_expired();
  const auto found = tickets_.find(id);
  if (found != tickets_.end() && found->second.session == session) return {};
  return fail(Errc::setup_session_not_found, "Environment customImage setup session not found",
              "ask for a token to its terminal first");
}

Task<> SetupTerminals::expect_still_good(core::Caller holder) {
  if (!holder.token_id) co_return Result<>{};  // a caller that needs no key here
  BERTH_CO_TRY(const auto key, co_await services_.store.read([&](store::Session& s) {
    return store::find_token(s, core::Reach::of(holder), *holder.token_id);
  }));
  const Time now = services_.clock.now();
  const bool is_over = key.value.expires_at && *key.value.expires_at <= now;
  if (key.value.revoked_at || is_over) co_return no_ticket();
  co_return Result<>{};
}

Task<SetupTerminals::Opened> SetupTerminals::open(Presented ticket) {
  forget_expired();
  const auto found = tickets_.find(ticket.id);
  const bool is_good = found != tickets_.end() && found->second.session == ticket.session &&
                       found->second.token_hash == sha256_hex(ticket.token);
  if (!is_good) co_return no_ticket();
  const core::Call call{.who = found->second.holder};
  BERTH_CO_DO(co_await expect_still_good(call.who));
  BERTH_CO_TRY(const SetupView view, co_await sessions_.get(call, ticket.session));
  if (!view.connection_payload) {
    co_return fail(Errc::conflict, "Setup session " + ticket.session.str() +
                                       " has no terminal any more: it is " +
                                       std::string{name_of(view.session.status)});
  }
  OpenTerminal wanted{.id = std::move(ticket.id), .size = ticket.size};
  const core::LeaseId lease = view.session.environment_lease_id;
  BERTH_CO_TRY(places::LiveCommandPtr command,
               co_await terminals_.open(call, lease, std::move(wanted)));
  co_return Opened{.command = std::move(command), .holder = call.who};
}

}  // namespace berth::engine
