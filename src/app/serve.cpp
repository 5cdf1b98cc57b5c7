#include "app/serve.hpp"

#include "api/table.hpp"
#include "app/doctor.hpp"
#include "app/home.hpp"
#include "app/metrics.hpp"
#include "app/places.hpp"
#include "app/plugin_parts.hpp"
#include "app/reachability.hpp"
#include "app/upkeep.hpp"
#include "base/async/task_group.hpp"
#include "base/log.hpp"
#include "cli/doctor/check.hpp"
#include "cli/version.hpp"
#include "engine/engine.hpp"
#include "engine/secrets/vault_key.hpp"
#include "engine/upkeep/janitor.hpp"
#include "http/routes/routes.hpp"
#include "http/server/assets.hpp"
#include "http/server/bearer_gate.hpp"
#include "http/server/server.hpp"
#include "store/secrets.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

namespace berth::app {
namespace {

constexpr std::chrono::seconds drain_grace{10};

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Without keys, every client that reaches the port is the operator, so only this machine may reach
// it.
Result<cli::HostPort> checked_listen(const cli::Settings& settings) {
  BERTH_TRY(cli::HostPort listen, cli::parse_listen(settings.listen));
  if (settings.mode == cli::Mode::local_trusted && !is_loopback(listen.host)) {
    return fail(Errc::config_invalid,
                "mode local_trusted requires no key, so it listens only on a loopback address, "
                "not on " +
                    listen.host,
                "listen on 127.0.0.1, or use --mode authenticated");
  }
  return listen;
}

// Without keys, the one operator owns the machine and needs no protection from it.
core::Allowances allowed_by_default(cli::Mode mode) {
  return mode == cli::Mode::local_trusted ? core::Allowances::all() : core::Allowances{};
}

// Without keys, the kernel identifies the caller.
bool asks_for_peer_user(const cli::Settings& settings) {
  return settings.mode == cli::Mode::local_trusted &&
         settings.trusted_users == cli::TrustedUsers::own;
}

http::ServerOptions server_options(const cli::Settings& settings, const cli::HostPort& listen) {
  http::ServerOptions options{.host = listen.host, .port = listen.port};
  options.limits.connections_max = static_cast<std::size_t>(settings.connections_max);
  options.limits.connections_reserved = static_cast<std::size_t>(settings.connections_reserved);
  options.limits.streams_of_caller_max = static_cast<std::size_t>(settings.streams_per_key);
  options.limits.streams_of_company_max = static_cast<std::size_t>(settings.streams_per_company);
  options.limits.relays_of_caller_max = static_cast<std::size_t>(settings.relays_per_key);
  options.limits.relays_of_company_max = static_cast<std::size_t>(settings.relays_per_company);
  options.limits.body_bytes_max = static_cast<std::size_t>(settings.body_bytes_max);
  options.asks_for_peer_user = asks_for_peer_user(settings);
  if (settings.tls_cert) options.tls = http::Tls{*settings.tls_cert, settings.tls_key.value_or("")};
  return options;
}

http::GateOptions gate_options(const cli::Settings& settings, const cli::HostPort& listen) {
  http::GateOptions options;
  if (settings.mode == cli::Mode::authenticated) options.mode = http::TrustMode::authenticated;
  options.hosts = settings.allowed_hosts;
  options.proxied_hosts = settings.allowed_hosts;
  options.is_tls = settings.tls_cert.has_value();
  options.hosts.push_back(listen.host);
  if (asks_for_peer_user(settings)) options.operators = {0U, ::geteuid()};
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

// Creates what a first start leaves behind: a company with its environments, and in `authenticated`
// an administrator key.
Task<> prepare(engine::Engine& work, const Home& home, cli::Mode mode) {
  BERTH_CO_DO(co_await engine::adopt_vault_key(work.services));
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

std::string machine_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Where users on other machines reach this server for what only it has.
std::string node_url(const cli::Settings& settings, http::ServerOptions options,
                     unsigned short port) {
  if (settings.public_url) return *settings.public_url;
  if (core::is_wildcard_host(options.host)) options.host = machine_name();
  return url_of(options, port);
}

core::Node new_node(Random& random, const Clock& clock) {
  return {.id = core::NodeId::make(random, clock.now()),
          .name = machine_name(),
          .version = std::string{cli::version()}};
}

// Where a sandbox's proxy reaches this server: on loopback, even if it listens on all addresses.
egress::Callback callback_of(const std::string& host, unsigned short port) {
  const bool everywhere = host == "0.0.0.0" || host == "::" || host == "localhost";
  const std::string text = everywhere ? "127.0.0.1" : host;
  const bool v6 = text.contains(':');
  return {.address = egress::Address::parse(text).value_or(egress::Address{}),
          .port = port,
          .host = (v6 ? "[" + text + "]" : text) + ":" + std::to_string(port)};
}

// The lifetime of the running server: starts it, waits for a signal, and shuts it down in order.
class Program {
 public:
  Program(asio::io_context& loop, engine::Engine& work, const engine::RunLogs& logs,
          http::Server& server, const Home& home, Places& places, PluginParts& plugins)
      : loop_(loop),
        work_(work),
        logs_(logs),
        server_(server),
        home_(home),
        places_(places),
        plugins_(plugins) {}

  Result<> run(const http::ServerOptions& options, const cli::Settings& settings) {
    life_.start("serve", life(options, settings));
    loop_.run();
    return std::move(outcome_);
  }

 private:
  Task<> life(http::ServerOptions options, const cli::Settings& settings) {
    outcome_ = co_await serve_until_signal(std::move(options), settings);
    const Result<> closed = co_await places_.close();
    if (outcome_ && !closed) outcome_ = closed;
    const Result<> settled = co_await work_.plugins.stop();
    if (outcome_ && !settled) outcome_ = settled;
    const Result<> ended = co_await plugins_.close();
    if (outcome_ && !ended) outcome_ = ended;
    co_return Result<>{};
  }

  Task<> serve_until_signal(http::ServerOptions options, const cli::Settings& settings) {
    const cli::Mode mode = settings.mode;
    BERTH_CO_TRY(const bool makes_sandboxes, co_await places_.makes_sandboxes());
    if (makes_sandboxes) work_.catalog.linux_works();
    BERTH_CO_DO(co_await prepare(work_, home_, mode));
    // Before the node is announced, because the others need its address; no request is answered
    // yet.
    BERTH_CO_TRY(const unsigned short port, server_.listen());
    const std::string url = url_of(options, port);
    work_.node.reachable_as(node_url(settings, options, port));
    BERTH_CO_DO(co_await join());
    core::ApiUrlFacts facts = api_url_facts(settings, options.host, port);
    if (options.tls && !facts.public_base_url) facts.public_base_url = url;
    BERTH_CO_TRY(std::vector<std::string> candidates, api_candidates(facts));
    work_.dispatcher.reachable_as(core::primary_api_url(facts), std::move(candidates));
    places_.listens_on(port);
    plugins_.listens_on(port);
    if (!options.tls) places_.reachable_at(callback_of(options.host, port));
    BERTH_CO_DO(home_.announce(url));
    background_.start("accept", server_.accept());
    background_.start("janitor", engine::keep_clean(work_.services, logs_, work_.guards.quotas,
                                                    loop_.get_executor()));
    background_.start("agent homes", work_.homes.keep_clean(loop_.get_executor()));
    background_.start("heartbeat", beat());
    if (makes_sandboxes) {
      const UpkeepOptions wanted{.image_age_hours = settings.image_age_hours};
      background_.start("upkeep", keep_up(work_.services, places_, wanted, loop_.get_executor()));
    }
    BERTH_CO_DO(co_await work_.plugins.start_all());
    background_.start("dispatch", work_.dispatcher.dispatch());
    background_.start("sweeper", work_.sweeper.sweep());
    if (work_.services.store.engine() == store::EngineKind::postgres) {
      background_.start("run secrets", work_.run_secrets.watch());
    }
    std::printf("listening on %s\n", url.c_str());
    std::fflush(stdout);
    log::info("server.started",
              {{"url", url}, {"version", cli::version()}, {"mode", name_of(mode)}});
    if (cli::doctor::makes_everybody_root(mode, settings.trusted_users, ::geteuid())) {
      log::warn("server.everybody_is_root",
                {{"mode", name_of(mode)}, {"remedy", cli::doctor::root_remedy}});
    }

    const int signal = co_await end_signal();
    log::info("server.stopping", {{"signal", signal}});
    signals_.clear();  // a second signal ends the process at once
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    // But SIGHUP comes twice when a terminal closes: from the kernel and from the shell.
    std::signal(SIGHUP, SIG_IGN);
    const Result<> drained = co_await server_.drain(drain_grace);
    BERTH_CO_DO(co_await background_.stop());
    // Commands continue: their keepers hold them, and the next server finds them.
    BERTH_CO_DO(co_await work_.sweeper.stop());
    BERTH_CO_DO(co_await work_.dispatcher.stop());
    home_.withdraw();
    co_return fenced_ ? drained : std::move(fenced_);
  }

  // The signal that ends this server; 0 when it was fenced. With a terminal, SIGHUP means that the
  // terminal closes. Without one, the operator wants to reload the settings, which requires a
  // restart.
  asio::awaitable<int> end_signal() {
    while (fenced_) {  // not fenced yet
      const auto [error, signal] =
          co_await signals_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (error) co_return 0;
      if (signal != SIGHUP || has_terminal_) co_return signal;
      log::info("server.nothing_to_reload",
                {{"signal", signal}, {"remedy", "settings are read at the start: restart it"}});
    }
    co_return 0;
  }

  // The home folder records the node before the store does, so that the home folder's next server
  // finds everything the node holds.
  Task<> join() {
    BERTH_CO_DO(home_.remember_node(work_.node.id()));
    co_return co_await work_.node.join(home_.former_nodes());
  }

  Task<> beat() {
    Result<> beaten =
        co_await work_.node.beat([this] { work_.dispatcher.after_beat(work_.node.has_peers()); });
    if (!beaten) {
      fenced_ = std::move(beaten);
      signals_.cancel();
    }
    co_return Result<>{};
  }

  asio::io_context& loop_;
  engine::Engine& work_;
  const engine::RunLogs& logs_;
  http::Server& server_;
  const Home& home_;
  Places& places_;
  PluginParts& plugins_;
  // Set before the server is announced, so that a signal never finds it unprepared.
  asio::signal_set signals_{loop_, SIGTERM, SIGINT, SIGHUP};
  // Checked now: a terminal that has closed is not detected any more.
  const bool has_terminal_ = ::isatty(STDIN_FILENO) == 1 || ::isatty(STDOUT_FILENO) == 1;
  Result<> fenced_;  // why this server must no longer act
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

  asio::io_context loop{1};  // one thread owns all state; the store has its own threads
  store::Store store{*database};
  engine::Feed feed{loop.get_executor()};
  BERTH_TRY(engine::RunLogs logs, engine::RunLogs::open(home.logs_folder()));
  BERTH_TRY(engine::HomeDisk homes,
            engine::HomeDisk::open(home.homes_folder(), random, clock.now()));
  const engine::Services services{.store = store,
                                  .vault = vault,
                                  .clock = clock,
                                  .random = random,
                                  .feed = feed,
                                  .allowed_by_default = allowed_by_default(settings.mode)};
  BERTH_TRY(const std::unique_ptr<PluginParts> plugins,
            PluginParts::open(loop, clock, services, home, settings));
  BERTH_TRY(const std::unique_ptr<Places> places,
            Places::open(loop, clock, random, home, settings, *plugins));
  engine::Engine work{services,
                      {.places = places->registry(),
                       .logs = logs,
                       .node = new_node(random, clock),
                       .former = home.former_nodes(),
                       .options = {.hold_ms = settings.hold_seconds * 1000,
                                   .silence_ms = settings.silence_seconds * 1000,
                                   .runs_max = settings.runs_max},
                       .executor = loop.get_executor(),
                       .plugins = &plugins->place(),
                       .homes = &homes}};
  const std::string engine_name =
      database->engine() == store::EngineKind::sqlite ? "sqlite" : "postgres";
  Metrics metrics{std::string{cli::version()}, engine_name};
  http::BearerGate gate{gate_options(settings, listen), work.tokens, work.run_tokens};
  const api::ServerFacts facts{.version = std::string{cli::version()},
                               .mode = std::string{name_of(settings.mode)},
                               .database = engine_name,
                               .is_tls = settings.tls_cert.has_value(),
                               .started_at = clock.now()};
  const http::ServerOptions options = server_options(settings, listen);
  const Doctor doctor{settings, work.settings};
  // A disk whose space is unknown is not reported as full.
  const auto disk = [&settings] { return room_on_disk(settings.home).value_or(DiskRoom{}); };
  const api::Examination examination{
      .keeps_output = [disk] { return disk().keeps_output(); },
      .metrics = [&metrics, &work, disk] { return metrics.text(work.dispatcher.counts(), disk()); },
      .findings = [&doctor] { return doctor.examine(); },
      .walls = [&doctor, &work] { return doctor.walls(work.walls); }};
  const api::Table operations = api::all_operations(work, facts, examination);
  std::vector<http::Route> routes = http::all_routes(operations, work, facts, examination);
  if (const auto page = http::embedded_page(); !page.empty()) {
    routes.push_back(http::page_route(page));
  }
  http::Server server{loop, options, std::move(routes), gate, metrics};
  return Program{loop, work, logs, server, home, *places, *plugins}.run(options, settings);
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
