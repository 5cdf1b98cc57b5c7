#include "app/serve.hpp"

#include "app/home.hpp"
#include "app/metrics.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "cli/version.hpp"
#include "engine/engine.hpp"
#include "engine/janitor.hpp"
#include "engine/vault_key.hpp"
#include "http/bearer_gate.hpp"
#include "http/routes/routes.hpp"
#include "http/server.hpp"
#include "store/secrets.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>

namespace berth::app {
namespace {

constexpr std::chrono::seconds drain_grace{10};

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Without keys, whoever reaches the port is the operator: so only this machine may reach it.
Result<cli::HostPort> checked_listen(const cli::Settings& settings) {
  BERTH_TRY(cli::HostPort listen, cli::parse_listen(settings.listen));
  if (settings.mode == cli::Mode::local_trusted && !is_loopback(listen.host)) {
    return fail(Errc::config_invalid,
                "mode local_trusted asks nobody for a key, so it listens on a loopback address "
                "only, not on " +
                    listen.host,
                "listen on 127.0.0.1, or use --mode authenticated");
  }
  return listen;
}

http::ServerOptions server_options(const cli::Settings& settings, const cli::HostPort& listen) {
  http::ServerOptions options{.host = listen.host, .port = listen.port};
  options.limits.connections_max = static_cast<std::size_t>(settings.connections_max);
  options.limits.body_bytes_max = static_cast<std::size_t>(settings.body_bytes_max);
  if (settings.tls_cert) options.tls = http::Tls{*settings.tls_cert, settings.tls_key.value_or("")};
  return options;
}

http::GateOptions gate_options(const cli::Settings& settings, const cli::HostPort& listen) {
  http::GateOptions options;
  if (settings.mode == cli::Mode::authenticated) options.mode = http::TrustMode::authenticated;
  options.hosts = settings.allowed_hosts;
  options.hosts.push_back(listen.host);
  return options;
}

Result<vault::Vault> open_vault(const cli::Config& config, store::Database& database,
                                Random& random) {
  std::vector<std::string> in_use;
  BERTH_DO(store::read_now(database, [&](store::Session& s) -> Result<> {
    BERTH_TRY(in_use, store::key_ids_in_use(s));
    return {};
  }));
  const auto revealed = [](const std::optional<Secret>& key) {
    return key ? std::optional{std::string{key->reveal()}} : std::nullopt;
  };
  return vault::Vault::open({.key = revealed(config.master_key),
                             .previous_key = revealed(config.master_key_previous),
                             .file = config.settings.master_key_file,
                             .may_create = in_use.empty()},
                            random);
}

// What a first start leaves behind: a company with its Local environment, and in `authenticated` a
// key to get in with.
Task<> prepare(engine::Engine& work, const Home& home, cli::Mode mode) {
  BERTH_CO_DO(co_await engine::adopt_vault_key(work.means));
  BERTH_CO_DO(co_await work.companies.ensure_one());
  if (mode == cli::Mode::local_trusted) co_return Result<>{};
  BERTH_CO_TRY(const bool opened, co_await work.tokens.any());
  if (opened) co_return Result<>{};
  const std::string key = work.tokens.make_key();
  BERTH_CO_DO(home.write_admin_key(key));
  BERTH_CO_TRY(const bool ours, co_await work.tokens.add_first_admin(key));
  if (!ours) home.remove_admin_key();
  log::info("token.first_admin", {{"file", home.admin_key_file()}});
  co_return Result<>{};
}

std::string url_of(const http::ServerOptions& options, unsigned short port) {
  const bool v6 = options.host.find(':') != std::string::npos;
  return (options.tls ? "https://" : "http://") + (v6 ? "[" + options.host + "]" : options.host) +
         ":" + std::to_string(port);
}

// Owns the life of the running server: starts it, waits for a signal, and takes it down in order.
class Program {
 public:
  Program(asio::io_context& loop, engine::Engine& work, http::Server& server, const Home& home)
      : loop_(loop), work_(work), server_(server), home_(home) {}

  Result<> run(const http::ServerOptions& options, cli::Mode mode) {
    life_.start("serve", life(options, mode));
    loop_.run();
    return std::move(outcome_);
  }

 private:
  Task<> life(http::ServerOptions options, cli::Mode mode) {
    outcome_ = co_await serve_until_signal(std::move(options), mode);
    co_return Result<>{};
  }

  Task<> serve_until_signal(http::ServerOptions options, cli::Mode mode) {
    // Before anybody is told that the server is there, so that a signal never finds it unprepared.
    asio::signal_set signals{loop_, SIGTERM, SIGINT};
    BERTH_CO_DO(co_await prepare(work_, home_, mode));
    BERTH_CO_TRY(const unsigned short port, server_.listen());
    const std::string url = url_of(options, port);
    BERTH_CO_DO(home_.announce(url));
    background_.start("accept", server_.accept());
    background_.start("janitor", engine::keep_clean(work_.means, loop_.get_executor()));
    std::printf("listening on %s\n", url.c_str());
    std::fflush(stdout);
    log::info("server.started",
              {{"url", url}, {"version", cli::version()}, {"mode", name_of(mode)}});

    const auto [error, signal] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    log::info("server.stopping", {{"signal", error ? 0 : signal}});
    signals.clear();  // a second signal ends the process at once
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    const Result<> drained = co_await server_.drain(drain_grace);
    BERTH_CO_DO(co_await background_.stop());
    home_.withdraw();
    co_return drained;
  }

  asio::io_context& loop_;
  engine::Engine& work_;
  http::Server& server_;
  const Home& home_;
  TaskGroup life_{loop_.get_executor()};
  TaskGroup background_{loop_.get_executor()};
  Result<> outcome_;
};

Result<> try_serve(const cli::Config& config) {
  const cli::Settings& settings = config.settings;
  BERTH_TRY(const cli::HostPort listen, checked_listen(settings));
  BERTH_TRY(const Home home, Home::open(settings.home));
  BERTH_TRY(
      const auto database,
      store::open_database({.url = settings.database,
                            .readers = static_cast<unsigned>(settings.database_connections)}));
  SystemClock clock;
  SystemRandom random;
  BERTH_TRY(vault::Vault vault, open_vault(config, *database, random));

  asio::io_context loop{1};  // one thread owns all state; the store has threads of its own
  store::Store store{*database};
  engine::Feed feed{loop.get_executor()};
  engine::Engine work{{store, vault, clock, random, feed}};
  const std::string engine_name =
      database->engine() == store::EngineKind::sqlite ? "sqlite" : "postgres";
  Metrics metrics{std::string{cli::version()}, engine_name};
  http::BearerGate gate{gate_options(settings, listen), work.tokens};
  const http::ServerFacts facts{.version = std::string{cli::version()},
                                .mode = std::string{name_of(settings.mode)},
                                .database = engine_name,
                                .started_at = clock.now()};
  const http::ServerOptions options = server_options(settings, listen);
  http::Server server{loop, options,
                      http::all_routes(work, facts, [&metrics] { return metrics.text(); }), gate,
                      metrics};
  return Program{loop, work, server, home}.run(options, settings.mode);
}

}  // namespace

int serve(cli::Config config) {
  std::signal(SIGPIPE, SIG_IGN);
  log::configure(static_cast<log::Level>(config.settings.log_level),
                 static_cast<log::Format>(config.settings.log_format));
  const Result<> done = try_serve(config);
  if (done) return 0;
  const Error& error = done.error();
  std::fprintf(stderr, "error: %s\n  code: %s\n", error.message.c_str(),
               std::string{name_of(error.code)}.c_str());
  if (!error.remedy.empty()) std::fprintf(stderr, "  fix: %s\n", error.remedy.c_str());
  return 1;
}

}  // namespace berth::app
