// lease_cost KEEPER PLUGIN FOLDER COUNT: acquires and releases COUNT leases, one after the other,
// from the sandbox provider in the plugin folder PLUGIN. As in the server, every intention and
// every fact is durable before the next step. Prints the median time of one in microseconds, the
// size of its row in bytes, and the median time of the provider's part alone.

#include "base/clock.hpp"
#include "engine/engine.hpp"
#include "engine/secrets/vault_key.hpp"
#include "places/registry.hpp"
#include "places/remote/remote_place.hpp"
#include "plugins/manifest/manifest_file.hpp"
#include "store/places/environments.hpp"
#include "store/sql/database.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace berth;
using Steady = std::chrono::steady_clock;

constexpr int warm_up_leases = 5;
constexpr const char* provider_key = "fake-plugin";

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "lease_cost: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class T>
asio::awaitable<void> keep_answer(Task<T> task, std::optional<Result<T>>& answer) {
  answer = co_await std::move(task);
}

template <class T>
T must(asio::io_context& loop, Task<T> task) {
  std::optional<Result<T>> answer;
  asio::co_spawn(loop, keep_answer(std::move(task), answer), [](std::exception_ptr thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  loop.restart();
  while (!answer) loop.run_one();
  return need(*std::move(answer));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double us_since(Steady::time_point start) {
  return std::chrono::duration<double, std::micro>(Steady::now() - start).count();
}

class NoServices final : public plugins::HostServices {
 public:
  bool has(std::string_view /*method*/) const override { return false; }
  Task<bj::value> answer(plugins::RequestScope, std::string method, bj::object) override {
    co_return fail(Errc::bug, method);
  }
  Task<std::vector<plugins::CompanyConfig>> configs(core::PluginId) override {
    co_return std::vector<plugins::CompanyConfig>{};
  }
  void log(const core::PluginId&, plugins::PluginLogLine) override {}
  void state_changed(const core::PluginId&, plugins::WorkerState, plugins::StateReason) override {}
};

struct Costs {
  std::vector<double> whole_us;
  std::vector<double> provider_us;
  std::size_t row_bytes = 0;
};

// The lifetime of a lease without a run.
Task<> live_once(engine::Engine& work, core::Environment environment, Random& random, Clock& clock,
                 Costs& costs) {
  const auto start = Steady::now();
  const core::LeaseId id = core::LeaseId::make(random, clock.now());
  BERTH_CO_TRY(engine::LeaseLifecycle::Row row,
               co_await work.services.store.write([&](store::Session& s) {
                 return work.lease_lifecycle.intend(s, id, environment, nullptr, {});
               }));
  BERTH_CO_TRY(engine::LeaseLifecycle::Held held,
               co_await work.lease_lifecycle.acquire(std::move(row), {}, {}));
  BERTH_CO_TRY(row, co_await work.services.store.write([&](store::Session& s) {
    return work.lease_lifecycle.begin_release(s, held.lease, core::LeaseEvent::release_succeeded);
  }));
  BERTH_CO_TRY(row, co_await work.lease_lifecycle.settle(std::move(row)));
  costs.whole_us.push_back(us_since(start));
  costs.row_bytes = encode_text(encode(static_cast<const core::Lease&>(row.value))).size();
  if (row.value.status == core::LeaseState::released) co_return Result<>{};
  co_return fail(Errc::bug, "the lease is " + std::string{name_of(row.value.status)});
}

// The same without a store.
Task<> ask_once(places::Place& place, core::Environment environment, Random& random, Clock& clock,
                Costs& costs) {
  const auto start = Steady::now();
  places::AcquireRequest request{.lease = {.key = core::LeaseId::make(random, clock.now()),
                                           .driver = core::DriverKind::sandbox,
                                           .company_id = environment.company_id,
                                           .environment_id = environment.id,
                                           .config = environment.config}};
  BERTH_CO_TRY(places::Acquired made, co_await place.acquire(request));
  request.lease.provider_lease_id = made.provider_lease_id;
  request.lease.metadata = std::move(made.metadata);
  BERTH_CO_DO(co_await place.release(request.lease, core::LeaseEvent::release_succeeded));
  costs.provider_us.push_back(us_since(start));
  co_return Result<>{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) give_up("usage: lease_cost KEEPER PLUGIN FOLDER COUNT");
  ::signal(SIGPIPE, SIG_IGN);
  const std::string home = argv[3];
  asio::io_context loop{1};
  SystemClock clock;
  SystemRandom random;
  NoServices services;
  plugins::Host host{loop.get_executor(),
                     {.keeper_program = argv[1], .folder = home + "/execs"},
                     services,
                     clock,
                     random};
  const plugins::InstalledPlugin plugin{
      .id = core::PluginId::make(random, clock.now()),
      .manifest = must(
          loop, plugins::read_manifest(loop.get_executor(), argv[2], {.keeper_program = argv[1]})),
      .package = {.folder = argv[2]}};
  must(loop, host.start(plugin));
  places::remote::RemotePlace remote{host, places::remote::Addressing::provider_key};
  places::remote::RemotePlace by_plugin{host, places::remote::Addressing::plugin_key};
  places::Registry registry;
  registry.add_plugins(remote, by_plugin);

  const auto database = need(store::open_database({.url = "sqlite:" + home + "/berth.db"}));
  store::Store store{*database};
  vault::Vault vault =
      need(vault::Vault::open({.file = home + "/master.key", .may_create = true}, random));
  engine::Feed feed{loop.get_executor()};
  engine::RunLogs logs = need(engine::RunLogs::open(home + "/logs"));
  engine::Engine work{{store, vault, clock, random, feed},
                      {.places = registry,
                       .logs = logs,
                       .node = {.id = core::NodeId::make(random, clock.now()), .name = "bench"},
                       .executor = loop.get_executor()}};
  must(loop, work.node.join({}));
  must(loop, engine::adopt_vault_key(work.services));
  const core::Call operator_call{
      .who = {.kind = core::CallerKind::local_operator, .role = core::Role::admin}};
  const auto company = must(loop, work.companies.create(operator_call, {"bench", {}}));
  const core::Environment environment{.id = core::EnvironmentId::make(random, clock.now()),
                                      .company_id = company.value.id,
                                      .name = "bench",
                                      .description = {},
                                      .driver = core::DriverKind::sandbox,
                                      .config = {{"provider", provider_key}},
                                      .env_vars = {},
                                      .metadata = {},
                                      .created_at = clock.now(),
                                      .updated_at = clock.now()};
  must(loop,
       store.write([&](store::Session& s) { return store::insert_environment(s, environment); }));

  places::Place& place = *need(registry.find(core::DriverKind::sandbox, environment.config));
  const int count = std::max(1, std::atoi(argv[4]));
  Costs costs;
  for (int i = -warm_up_leases; i < count; ++i) {
    if (i == 0) costs = {};
    must(loop, live_once(work, environment, random, clock, costs));
    must(loop, ask_once(place, environment, random, clock, costs));
  }
  must(loop, work.sweeper.stop());
  must(loop, work.dispatcher.stop());
  must(loop, remote.close());
  must(loop, by_plugin.close());
  must(loop, registry.close());
  must(loop, host.close());
  std::printf("%.1f %zu %.1f\n", median(costs.whole_us), costs.row_bytes,
              median(costs.provider_us));
}
