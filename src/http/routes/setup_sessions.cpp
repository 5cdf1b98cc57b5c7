#include "http/routes/in_company.hpp"
#include "http/routes/routes.hpp"
#include "http/routes/terminal.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

// Custom images of environments, and the sessions in which a user prepares one.
namespace berth::http {
namespace {

struct SessionPath {
  core::SetupSessionId session;
};
BOOST_DESCRIBE_STRUCT(SessionPath, (), (session))

struct RevokeQuery {
  std::optional<core::CompanyId> company_id;
  std::optional<bool> delete_provider_template;
};
BOOST_DESCRIBE_STRUCT(RevokeQuery, (), (company_id, delete_provider_template))

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

std::vector<Route> ticket_table(engine::SetupTerminals& terminals) {
  const std::string path = "/api/environment-custom-image-setup-sessions/{session}";
  return {
      Endpoint<SessionPath, None, None, engine::SetupTerminalToken>{
          .verb = Verb::post,
          .path = path + "/terminal-session-token",
          .needs = core::Permission::company_operate,
          .tag = "templates",
          .says = "A token with which a page opens the terminal of a setup session",
          .status = 201,
          .call = [&terminals](core::Call call,
                               auto in) { return terminals.issue(call, in.path.session); }},
      SocketEndpoint<SessionPath, TicketQuery>{
          .path = path + "/terminal/ws",
          // The token is the permission.
          .needs = core::Permission::open,
          .tag = "templates",
          .says =
              "The terminal of a setup session, for the client that sends its token in the first "
              "frame, {type: auth, token}, within ten seconds; then {type: input, data} and "
              "{type: resize, cols, rows}, answered by ready, output, error and closed",
          .call =
              [&terminals](core::Call /*call*/, auto in, Socket& socket) {
                return terminal(terminals, in.path.session, in.query, socket);
              }},
  };
}

std::vector<Route> image_table(engine::Engine& work) {
  using core::Permission;
  engine::Environments& environments = work.environments;
  engine::Templates& templates = work.templates;
  const std::string path = "/api/environments/{environment}/custom-image-template";
  return {
      Endpoint<EnvironmentPath, CompanyQuery, None, engine::CustomImage>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "What sandboxes of an environment start from, and who prepares another",
          .call =
              [&environments, &templates](core::Call call, auto in) {
                const auto next = [&templates, call, id = in.path.environment] {
                  return templates.custom_image(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, CompanyQuery, None, engine::ImageRolledBack>{
          .verb = Verb::post,
          .path = path + "/rollback",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Make the template that was active before the active one again",
          .call =
              [&environments, &templates](core::Call call, auto in) {
                const auto next = [&templates, call, id = in.path.environment] {
                  return templates.roll_back(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, CompanyQuery, engine::RelinkImage, engine::ImageRelinked>{
          .verb = Verb::post,
          .path = path + "/relink",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says =
              "Take the active template for one of the config of today, so that sandboxes start "
              "from it again",
          .call =
              [&environments, &templates](core::Call call, auto in) {
                const auto next = [&templates, call, id = in.path.environment,
                                   body = std::move(in.body)] {
                  return templates.relink(call, id, body);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, RevokeQuery, None, core::Template>{
          .verb = Verb::delete_,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Let sandboxes of an environment start from its image again; the template stays, "
                  "unless deleteProviderTemplate says that it goes as soon as nothing stands on it",
          .call =
              [&environments, &templates](core::Call call, auto in) {
                using engine::RevokedTemplate;
                const bool goes = in.query.delete_provider_template.value_or(false);
                const auto next = [&templates, call, id = in.path.environment, goes] {
                  return templates.revoke(call, id,
                                          goes ? RevokedTemplate::goes : RevokedTemplate::stays);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
  };
}

std::vector<Route> session_table(engine::Engine& work) {
  using core::Permission;
  engine::Environments& environments = work.environments;
  engine::SetupSessions& sessions = work.setup_sessions;
  const std::string path = "/api/environment-custom-image-setup-sessions/{session}";
  return {
      Endpoint<EnvironmentPath, CompanyQuery, engine::StartSetup, engine::SetupView>{
          .verb = Verb::post,
          .path = "/api/environments/{environment}/custom-image-setup-sessions",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Make a sandbox of an environment for an operator to prepare by hand",
          .status = 201,
          .call =
              [&environments, &sessions](core::Call call, auto in) {
                const auto next = [&sessions, call, id = in.path.environment,
                                   body = std::move(in.body)] {
                  return sessions.start(call, id, body);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<SessionPath, None, None, engine::SetupView>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Read a setup session, and how to get into its sandbox",
          .call = [&sessions](core::Call call,
                              auto in) { return sessions.get(call, in.path.session); }},
      Endpoint<SessionPath, None, engine::FinishSetup, engine::SetupFinished>{
          .verb = Verb::post,
          .path = path + "/finish",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Capture the sandbox of a setup session; the environment starts from it from now "
                  "on",
          .call =
              [&sessions](core::Call call, auto in) {
                return sessions.finish(call, in.path.session, std::move(in.body));
              }},
      Endpoint<SessionPath, None, engine::CancelSetup, core::SetupSession>{
          .verb = Verb::post,
          .path = path + "/cancel",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "End a setup session without capturing anything",
          .call =
              [&sessions](core::Call call, auto in) {
                return sessions.cancel(call, in.path.session, std::move(in.body));
              }},
  };
}

}  // namespace

std::vector<Route> setup_session_routes(engine::Engine& work) {
  std::vector<Route> all = image_table(work);
  for (Route& route : session_table(work)) all.push_back(std::move(route));
  for (Route& route : ticket_table(work.setup_terminals)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
