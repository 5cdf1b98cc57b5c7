#include "contract/work_fixture.hpp"

#include "engine/secrets/vault_key.hpp"
#include "keeper/holder/process_tree.hpp"
#include "places/fake/fake.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/runs.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace berth::engine {
namespace {

using core::DriverKind;

places::LocalOptions local_options(const std::string& home) {
  places::LocalOptions options{.state_root = home + "/leases", .keeper_program = BERTH_KEEPER};
  for (const char* passed : {"ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
    const char* value = std::getenv(passed);
    if (value != nullptr) {
      options.keeper_environment.push_back(std::string{passed} + "=" + value);
    }
  }
  return options;
}

}  // namespace

Server::Server(const ServerParts& parts, const std::string& home, WorkOptions options)
    : feed_(parts.loop.get_executor()),
      services_{parts.store, parts.vault, parts.clock, parts.random, feed_, parts.allowed},
      background_(parts.loop.get_executor()) {
  places_.add_provider("fake", std::make_unique<places::Fake>(parts.random, parts.clock));
  auto local =
      std::make_unique<places::Local>(parts.loop.get_executor(), parts.pool, local_options(home));
  local_ = local.get();
  places_.add(DriverKind::local, std::move(local));
  auto logs = RunLogs::open(home + "/logs");
  EXPECT_TRUE(logs) << logs.error().message;
  logs_.emplace(*std::move(logs));
  options.api_url = "http://127.0.0.1:1";
  engine_ = std::make_unique<Engine>(
      services_,
      Workplace{.places = places_,
                .logs = *logs_,
                .node = {.id = core::NodeId::make(parts.random, parts.clock.now()), .name = "test"},
                .options = std::move(options),
                .executor = parts.loop.get_executor()});
  list_linux(engine_->catalog);
}

Boxes& Server::use_boxes() {
  ProviderCapability boxes;
  boxes.status = Support::supported;
  boxes.supports_run_execution = true;
  boxes.supports_interactive_setup = true;
  boxes.supports_template_capture = true;
  engine_->catalog.add("boxes", std::move(boxes));
  return use_boxes_for(DriverKind::sandbox);
}

Boxes& Server::use_boxes_for(DriverKind kind) {
  auto boxes = std::make_unique<Boxes>(*local_);
  Boxes& out = *boxes;
  places_.add(kind, std::move(boxes));
  return out;
}

void Server::open() {
  background_.start("dispatch", engine_->dispatcher.dispatch());
}

Task<> Server::stop() {
  BERTH_CO_DO(co_await background_.stop());
  BERTH_CO_DO(co_await engine_->sweeper.stop());
  BERTH_CO_DO(co_await engine_->dispatcher.stop());
  co_return co_await places_.close();
}

void WorkContract::SetUp() {
  ::signal(SIGPIPE, SIG_IGN);  // as the server does
  // Processes that escape a keeper become children of the test, where they are seen.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  EngineContract::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  Server& first = add_server("first");
  ASSERT_TRUE(await(adopt_vault_key(first->services)));
  const auto company = await(first->companies.create(admin(), {"Acme", std::nullopt}));
  ASSERT_TRUE(company) << company.error().message;
  company_ = company->value.id;
  const auto found =
      read([&](store::Session& s) { return store::find_local_environment(s, *company_); });
  ASSERT_TRUE(found && *found);
  local_ = (*found)->value.id;
}

void WorkContract::TearDown() {
  std::vector<std::string> left;
  for (const auto& each : servers_) {
    const auto held = await(each->local().held());
    for (const places::PlaceKey& id : held.value_or(std::vector<places::PlaceKey>{})) {
      left.push_back(id.str());
    }
    EXPECT_WORKS(await(each->stop()));
  }
  EXPECT_EQ(left, std::vector<std::string>{}) << "leases are left on the machine";
  EXPECT_TRUE(run_until([&] { return loop_.stopped(); })) << "a task is left";
  servers_.clear();
  const auto all_gone = [] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return keeper::descendants_of(::getpid()).empty();
  };
  EXPECT_TRUE(run_until(all_gone)) << "processes are left";
}

Server& WorkContract::add_server(const std::string& name, WorkOptions options) {
  const std::string home = folder_->path() + "/" + name;
  std::filesystem::create_directories(home + "/leases");
  servers_.push_back(std::make_unique<Server>(
      ServerParts{loop_, pool_, *store_, *vault_, hand_, any_}, home, std::move(options)));
  Server& added = *servers_.back();
  added->node.reachable_as("http://" + name + ":3100");
  EXPECT_WORKS(await(added->node.join({})));
  return added;
}

bool WorkContract::run_until(const std::function<bool()>& is_so, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    if (loop_.stopped()) loop_.restart();
    loop_.run_one_for(10ms);
  }
  return true;
}

void WorkContract::sweep(Server& by) {
  EXPECT_WORKS(await(by->dispatcher.adopt_orphans()));
  EXPECT_WORKS(await(by->sweeper.sweep_once()));
  EXPECT_TRUE(run_until([&] { return by->sweeper.is_idle(); })) << "the sweeper does not end";
}

core::Environment WorkContract::put_environment(DriverKind driver, const std::string& name,
                                                bj::object config,
                                                std::optional<bj::object> metadata) {
  core::Environment made = StoreContract::environment(*company_, name);
  made.driver = driver;
  made.config = std::move(config);
  made.env_vars = {};
  made.metadata = std::move(metadata);
  EXPECT_WORKS(write([&](store::Session& s) { return store::insert_environment(s, made); }));
  return made;
}

core::Run WorkContract::put_run(const core::Environment& environment, core::RunState status) {
  core::Run made = StoreContract::run(environment.company_id);
  made.environment_id = environment.id;
  made.node_id = server()->node.id();
  made.status = status;
  EXPECT_WORKS(write([&](store::Session& s) { return store::insert_run(s, made); }));
  return made;
}

void WorkContract::set_metadata(const core::EnvironmentId& id, bj::object metadata) {
  UpdateEnvironment change;
  change.metadata = {true, std::move(metadata)};
  EXPECT_WORKS(await(server()->environments.update(admin(), id, change)));
}

LeaseLifecycle::Row WorkContract::acquire(const core::Environment& environment,
                                          const core::Run& run) {
  LeaseLifecycle& work = server()->lease_lifecycle;
  const auto intended = write([&](store::Session& s) {
    return work.intend(s, fresh<core::LeaseId>(), environment, &run, {});
  });
  EXPECT_WORKS(intended);
  auto held = await(work.acquire(*intended, {}, {}));
  EXPECT_TRUE(held) << held.error().message;
  return std::move(held->lease);
}

LeaseLifecycle::Row WorkContract::begin_release(const LeaseLifecycle::Row& row,
                                                core::LeaseEvent how) {
  auto begun = write(
      [&](store::Session& s) { return server()->lease_lifecycle.begin_release(s, row, how); });
  EXPECT_WORKS(begun);
  return *std::move(begun);
}

LeaseLifecycle::Row WorkContract::release(const LeaseLifecycle::Row& row, core::LeaseEvent how) {
  auto settled = await(server()->lease_lifecycle.settle(begin_release(row, how)));
  EXPECT_WORKS(settled);
  return *std::move(settled);
}

core::LeaseRecord WorkContract::lease(const core::LeaseId& id) {
  auto found = read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), id);
  });
  EXPECT_WORKS(found);
  return std::move(found->value);
}

core::Sandbox WorkContract::sandbox(const core::SandboxId& id) {
  auto found = read(
      [&](store::Session& s) { return store::find_sandbox(s, core::Reach::everything(), id); });
  EXPECT_WORKS(found);
  return std::move(found->value);
}

std::int64_t WorkContract::held() {
  return number(
      "select count(*) from environment_leases"
      " where status not in ('released', 'expired', 'failed')");
}

StartRun WorkContract::program(std::vector<std::string> argv) {
  StartRun wanted{.command = argv.front()};
  wanted.args.emplace(argv.begin() + 1, argv.end());
  return wanted;
}

core::RunId WorkContract::start(StartRun wanted) {
  hand_.turn(1ms);  // so that the queue has an order
  const auto made = await(server()->runs.start(admin(), *company_, std::move(wanted)));
  EXPECT_WORKS(made);
  return made->id;
}

RunView WorkContract::look(const core::RunId& id) {
  auto seen = await(server()->runs.get(admin(), id, 0ms));
  EXPECT_WORKS(seen);
  return *std::move(seen);
}

RunView WorkContract::reaches(const core::RunId& id, core::RunState state) {
  RunView seen = look(id);
  const bool reached = run_until([&] {
    seen = look(id);
    return seen.status == state || core::is_final(seen.status);
  });
  EXPECT_TRUE(reached && seen.status == state)
      << "it is " << name_of(seen.status) << ": " << seen.error.value_or("");
  return seen;
}

RunView WorkContract::ended(const core::RunId& id) {
  RunView seen = look(id);
  const bool is_over = run_until([&] {
    seen = look(id);
    const auto& lease = seen.environment_lease;
    const bool is_settled = !lease || core::is_final(lease->status) ||
                            lease->status == core::LeaseState::retained ||
                            lease->status == core::LeaseState::pending_cleanup;
    return core::is_final(seen.status) && is_settled && !server()->dispatcher.has(id);
  });
  EXPECT_TRUE(is_over) << "run " << id.str() << " is " << name_of(seen.status);
  return seen;
}

std::string WorkContract::output(const core::RunId& id, core::OutputStream stream) {
  const LogRead read{.bytes_max = std::size_t{4} << 20, .format = LogFormat::raw, .stream = stream};
  const auto text = await(server()->runs.log(admin(), id, read));
  EXPECT_WORKS(text);
  return text->content;
}

std::vector<core::RunEventRecord> WorkContract::events(const core::RunId& id) {
  auto list = await(server()->runs.events(admin(), id, 0, 1000));
  EXPECT_WORKS(list);
  return *std::move(list);
}

bool WorkContract::says(const core::RunId& id, const std::string& text) {
  return run_until([&] { return said(id).contains(text); });
}

}  // namespace berth::engine
