#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"
#include "http/routes/terminal.hpp"

// Interactive commands in leased places.
namespace berth::http {
namespace {

// The output is not stored, so reading cannot resume.
constexpr Bounds no_offset{.usual = 0, .least = 0, .most = 0};
constexpr Bounds terminal_side{.usual = 80, .least = 1, .most = 1000};

struct TerminalQuery {
  std::optional<std::string> id;
  std::optional<std::string> command;  // a JSON array of text
  std::optional<std::string> cwd;
  std::optional<std::int64_t> columns;
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> offset;
};
BOOST_DESCRIBE_STRUCT(TerminalQuery, (), (id, command, cwd, columns, rows, offset))

Task<> terminal(engine::LeaseTerminals& terminals, core::Call call, core::LeaseId lease,
                TerminalQuery query, Socket& socket) {
  BERTH_CO_TRY(const std::int64_t offset, bounded("offset", query.offset, any_offset));
  engine::OpenTerminal wanted{.id = std::move(query.id), .argv = {}, .cwd = std::move(query.cwd)};
  if (query.command) {
    BERTH_CO_TRY(wanted.argv, decode_text<std::vector<std::string>>(*query.command));
  }
  BERTH_CO_TRY(wanted.size.columns, bounded("columns", query.columns, terminal_side));
  BERTH_CO_TRY(wanted.size.rows,
               bounded("rows", query.rows.value_or(wanted.size.rows), terminal_side));
  // Before the upgrade is answered, so that a missing lease is a plain 404.
  BERTH_CO_TRY(places::LiveCommandPtr opened,
               co_await terminals.open(std::move(call), std::move(lease), std::move(wanted)));
  AttachFrames frames;
  co_return co_await serve_terminal(std::move(opened), static_cast<std::uint64_t>(offset), frames,
                                    socket);
}

struct LoginQuery {
  places::LoginCommand command = places::LoginCommand::claude;
  std::optional<std::int64_t> offset;
};
BOOST_DESCRIBE_STRUCT(LoginQuery, (), (command, offset))

Task<> login(engine::LeaseTerminals& terminals, core::Call call, core::LeaseId lease,
             LoginQuery query, Socket& socket) {
  BERTH_CO_DO(bounded("offset", query.offset, no_offset));
  BERTH_CO_TRY(places::LiveCommandPtr opened,
               co_await terminals.log_in(std::move(call), std::move(lease), query.command));
  AttachFrames frames;
  co_return co_await serve_terminal(std::move(opened), 0, frames, socket, OnLeave::is_cancelled);
}

struct StreamQuery {
  std::string command;  // a JSON array of text
  std::optional<std::string> cwd;
  std::optional<bool> interactive;
  std::optional<bool> has_input;
  std::optional<std::int64_t> timeout_ms;
  std::optional<std::int64_t> offset;

  engine::OpenStream::Input input() const {
    using Input = engine::OpenStream::Input;
    if (!has_input.value_or(true)) return Input::none;
    return interactive.value_or(false) ? Input::live : Input::whole_will_do;
  }
};
BOOST_DESCRIBE_STRUCT(StreamQuery, (), (command, cwd, interactive, has_input, timeout_ms, offset))

Task<> stream(engine::LeaseTerminals& terminals, core::Call call, core::LeaseId lease,
              StreamQuery query, Socket& socket) {
  BERTH_CO_DO(bounded("offset", query.offset, no_offset));
  engine::OpenStream wanted{.argv = {},
                            .cwd = std::move(query.cwd),
                            .input = query.input(),
                            .timeout_ms = query.timeout_ms};
  BERTH_CO_TRY(wanted.argv, decode_text<std::vector<std::string>>(query.command));
  BERTH_CO_TRY(places::LiveCommandPtr opened,
               co_await terminals.stream(std::move(call), std::move(lease), std::move(wanted)));
  AttachFrames frames;
  co_return co_await serve_terminal(std::move(opened), 0, frames, socket, OnLeave::is_cancelled);
}

}  // namespace

std::vector<Route> lease_terminal_routes(engine::Engine& work) {
  using core::Permission;
  engine::LeaseTerminals& terminals = work.terminals;
  return {
      SocketEndpoint<LeasePath, TerminalQuery>{
          .path = "/api/environment-leases/{lease}/terminal",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "A terminal in a place that is held: its output as it comes, its stdin, size and "
                  "signals. The same id again finds the same terminal",
          .call =
              [&terminals](core::Call call, auto in, Socket& socket) {
                return terminal(terminals, std::move(call), in.path.lease, in.query, socket);
              }},
      SocketEndpoint<LeasePath, LoginQuery>{
          .path = "/api/environment-leases/{lease}/login",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "The login of an agent's own program, claude or codex, on a terminal in the "
                  "sandbox of a plugin, in the frames of the terminal. What it says is kept "
                  "nowhere, and it ends with its client",
          .call =
              [&terminals](core::Call call, auto in, Socket& socket) {
                return login(terminals, std::move(call), in.path.lease, in.query, socket);
              }},
      SocketEndpoint<LeasePath, StreamQuery>{
          .path = "/api/environment-leases/{lease}/stream",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "A command in a place that is held, with its input from the client, in the "
                  "frames of the terminal; it ends with its client. Where a plugin takes input "
                  "only as a whole the command runs when that has ended, which interactive=true "
                  "refuses; with hasInput=false there is none",
          .call =
              [&terminals](core::Call call, auto in, Socket& socket) {
                return stream(terminals, std::move(call), in.path.lease, in.query, socket);
              }},
  };
}

}  // namespace berth::http
