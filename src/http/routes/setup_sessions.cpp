#include "engine/templates/setup_terminals.hpp"
#include "http/binding.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"
#include "http/routes/terminal.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

// The sessions in which a user prepares the image of an environment.
namespace berth::http {
namespace {

using SessionPath = api::OfSetupSession;

struct TicketQuery {
  std::optional<std::string> terminal_session_id;
  std::optional<std::int64_t> columns;
  std::optional<std::int64_t> rows;
};
BOOST_DESCRIBE_STRUCT(TicketQuery, (), (terminal_session_id, columns, rows))

constexpr Bounds columns_bounds{.usual = 80, .least = 1, .most = 1000};
constexpr Bounds rows_bounds{.usual = 24, .least = 1, .most = 1000};
constexpr std::chrono::seconds first_word_limit{10};

BOOST_DEFINE_ENUM_CLASS(TicketWord, auth)

// The first message of a client.
struct TicketFrame {
  TicketWord type = TicketWord::auth;
  std::string token;
};
BOOST_DESCRIBE_STRUCT(TicketFrame, (), (type, token))

// A client that connects and sends nothing is disconnected.
Task<std::string> first_word(Socket& socket) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer limit{co_await asio::this_coro::executor, first_word_limit};
  const auto first =
      co_await (socket.receive() || limit.async_wait(asio::as_tuple(asio::use_awaitable)));
  if (first.index() == 1) co_return fail(Errc::unauthenticated, "the token did not come in time");
  const Result<std::optional<Message>>& message = std::get<0>(first);
  if (!message) co_return std::unexpected(message.error());
  if (!*message) co_return fail(Errc::cancelled, "the client is gone");
  BERTH_CO_TRY(const TicketFrame said, decode_text<TicketFrame>((*message)->bytes));
  co_return said.token;
}

Task<engine::SetupTerminals::Opened> opened_by(engine::SetupTerminals& terminals,
                                               engine::SetupTerminals::Presented ticket,
                                               Socket& socket) {
  BERTH_CO_TRY(ticket.token, co_await first_word(socket));
  co_return co_await terminals.open(std::move(ticket));
}

// The server rechecks callers that send a key; here there is none.
Task<> watch_holder(engine::SetupTerminals& terminals, core::Caller holder, Socket& socket) {
  constexpr std::chrono::seconds ask_every{2};
  asio::steady_timer next{co_await asio::this_coro::executor};
  while (true) {
    next.expires_after(ask_every);
    co_await next.async_wait(asio::use_awaitable);
    const Result<> still = co_await terminals.expect_still_good(holder);
    if (still || still.error().code != Errc::unauthenticated) continue;
    co_return co_await socket.close(CloseCode::policy_error,
                                    std::string{name_of(Errc::unauthenticated)});
  }
}

Task<> terminal(engine::SetupTerminals& terminals, core::SetupSessionId session, TicketQuery query,
                Socket& socket) {
  engine::SetupTerminals::Presented ticket{
      .session = std::move(session), .id = query.terminal_session_id.value_or(""), .token = {}};
  BERTH_CO_DO(terminals.expect(ticket.session, ticket.id));
  BERTH_CO_TRY(ticket.size.columns, bounded("columns", query.columns, columns_bounds));
  BERTH_CO_TRY(ticket.size.rows, bounded("rows", query.rows, rows_bounds));
  auto opened = co_await opened_by(terminals, std::move(ticket), socket);
  PageFrames frames;
  if (opened) {
    using namespace asio::experimental::awaitable_operators;
    const auto ended = co_await (serve_terminal(std::move(opened->command), 0, frames, socket) ||
                                 watch_holder(terminals, std::move(opened->holder), socket));
    co_return std::visit([](const Result<>& first) { return first; }, ended);
  }
  const Error why = opened.error();
  if (why.code == Errc::cancelled) co_return std::unexpected(why);
  BERTH_CO_DO(co_await socket.send(frames.failed(why)));
  co_return co_await socket.close(CloseCode::policy_error, std::string{name_of(why.code)});
}

}  // namespace

std::vector<Route> setup_session_routes(const api::Table& operations,
                                        engine::SetupTerminals& terminals) {
  using enum Verb;
  const std::string path = "/api/environment-custom-image-setup-sessions/{session}";
  std::vector<Route> all = bind_all(
      operations, "templates",
      {{post, "/api/environments/{environment}/custom-image-setup-sessions", "setup.start", 201},
       {get, path, "setup.get"},
       {post, path + "/finish", "setup.finish"},
       {post, path + "/cancel", "setup.cancel"},
       {post, path + "/terminal-session-token", "setup.issue_terminal_token", 201}});
  all.push_back(SocketEndpoint<SessionPath, TicketQuery>{
      .path = path + "/terminal/ws",
      // The token is the permission.
      .needs = core::Permission::open,
      .tag = "templates",
      .says = "The terminal of a setup session, for the client that sends its token in the first "
              "frame, {type: auth, token}, within ten seconds; then {type: input, data} and "
              "{type: resize, cols, rows}, answered by ready, output, error and closed",
      .call = [&terminals](core::Call /*call*/, auto in, Socket& socket) {
        return terminal(terminals, in.path.session, in.query, socket);
      }});
  return all;
}

}  // namespace berth::http
