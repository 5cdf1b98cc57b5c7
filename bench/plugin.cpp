// plugin_cost KEEPER ECHO FOLDER: what talking to a plugin costs. Prints ten numbers: microseconds
// of a call and of the same bytes to the same worker over bare pipes, measured alternately, with
// both sides on one core; the same with each side on its own core (0 if there is only one); how
// many of a thousand calls in flight were answered, and in how many milliseconds; MB/s of live
// output from a worker through the host to a follower, and MB/s of the same through a bare pipe;
// milliseconds from a worker's start in its box to its first response, and of one without a box,
// measured alternately.
//
// Cores are assigned, because a round trip to a sleeping core takes eight times as long as one on
// the same core, and the kernel chooses anew for every process.

#include "bare_pipe.hpp"
#include "base/clock.hpp"
#include "places/remote/remote_place.hpp"
#include "plugins/spawn.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>

#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace berth;
using namespace berth::plugins;
using Seconds = std::chrono::duration<double>;

constexpr int rounds = 7;
constexpr int calls_per_round = 5'000;
constexpr int starts_per_kind = 21;
constexpr int calls_at_once = 1'000;
constexpr int megabytes = 100;  // of one command; more than 128 Mi are ignored

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "plugin_cost: %s\n", why.c_str());
  std::exit(1);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Quiet final : public HostServices {
 public:
  bool has(std::string_view /*method*/) const override { return false; }
  Task<bj::value> answer(RequestScope, std::string method, bj::object) override {
    co_return fail(Errc::bug, method);
  }
  Task<std::vector<CompanyConfig>> configs(core::PluginId) override {
    co_return std::vector<CompanyConfig>{};
  }
  void log(const core::PluginId&, PluginLogLine) override {}
  void state_changed(const core::PluginId&, WorkerState, StateReason) override {}
};

class Counter final : public places::OutputTaker {
 public:
  Task<> take(std::span<const places::OutputPiece> pieces) override {
    for (const auto& piece : pieces) bytes += piece.bytes.size();
    co_return Result<>{};
  }
  std::size_t bytes = 0;
};

Launching launching(const std::string& keeper) {
  Launching way{.keeper_program = keeper};
  if (::geteuid() == 0) way.user = WorkerUser{.uid = 61'398, .gid = 61'398};
  return way;
}

Manifest manifest(const std::string& program) {
  const bj::value document = bj::parse(R"({
    "id": "bench.echo", "apiVersion": 1, "version": "1.0.0", "displayName": "Echo",
    "description": "Echo", "author": "Bench", "categories": ["automation"],
    "capabilities": ["environment.drivers.register"], "entrypoints": {"worker": ")" +
                                       program + R"("},
    "environmentDrivers": [{"driverKey": "echo", "kind": "sandbox_provider",
      "displayName": "Echo", "configSchema": {}}]})");
  auto read = parse_manifest(document);
  if (!read) give_up(read.error().message);
  return *std::move(read);
}

// One line out and one back, with blocking calls and without parsing.
class BarePipes {
 public:
  explicit BarePipes(const Launching& way, const std::string& program) {
    auto made = spawn_program({.argv = {program}}, way);
    if (!made) give_up(made.error().message);
    worker_ = *std::move(made);
  }
  ~BarePipes() {
    worker_.in = Fd{};
    ::waitpid(worker_.pid, nullptr, 0);
  }
  double microseconds(int calls = calls_per_round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      const std::string line =
          request_line(static_cast<std::uint64_t>(i + 1), "health", bj::object{}, std::nullopt);
      if (::write(worker_.in.get(), line.data(), line.size()) < 0) give_up("write");
      std::array<char, 4096> buffer{};
      for (char last = 0; last != '\n';) {
        const ssize_t size = ::read(worker_.out.get(), buffer.data(), buffer.size());
        if (size <= 0) give_up("read");
        last = buffer[static_cast<std::size_t>(size) - 1];
      }
    }
    return seconds_since(start) * 1e6 / calls;
  }

 private:
  Spawned worker_;
};

// From nothing to the first response.
double start_ms(const Launching& way, const std::string& program) {
  const auto start = std::chrono::steady_clock::now();
  BarePipes worker{way, program};
  worker.microseconds(1);
  return seconds_since(start) * 1e3;
}

struct Starts {
  double boxed_ms = 0;
  double bare_ms = 0;
};

Starts starts(const Launching& bare, const std::string& program) {
  Launching boxed = bare;
  boxed.box = keeper::PluginBox{.readable = {program.substr(0, program.rfind('/'))},
                                .ports = {22, 80, 443, 6443, 8443}};
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < starts_per_kind; ++i) {
    with.push_back(start_ms(boxed, program));
    without.push_back(start_ms(bare, program));
  }
  return {median(std::move(with)), median(std::move(without))};
}

// The cores that this program had at its start. Child processes inherit its core at the time.
class Cores {
 public:
  Cores() {
    if (::sched_getaffinity(0, sizeof all_, &all_) != 0) give_up("sched_getaffinity");
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &all_)) each_.push_back(core);
    }
  }
  std::size_t count() const { return each_.size(); }
  void use_only(std::size_t which) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(each_.at(which), &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0) give_up("sched_setaffinity");
  }
  void use_all() const { ::sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
  std::vector<int> each_;
};

asio::awaitable<double> many_calls(Host& host, core::PluginId id) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_per_round; ++i) {
    PluginCall call{.method = "health"};
    if (const CallResult answer = co_await host.call(id, std::move(call)); !answer) {
      give_up(answer.error().message);
    }
  }
  co_return seconds_since(start) * 1e6 / calls_per_round;
}

Task<double> live_output(Host& host, core::CompanyId company, core::LeaseId lease_id) {
  places::remote::RemotePlace remote{host, places::remote::Addressing::provider_key};
  const places::PlaceRef lease{.key = std::move(lease_id),
                               .company_id = std::move(company),
                               .config = {{"provider", "echo"}},
                               .provider_lease_id = "x"};
  const places::Command command{.exec_id = "x", .argv = {"out", std::to_string(megabytes)}};
  const auto start = std::chrono::steady_clock::now();
  BERTH_CO_DO(co_await remote.start(lease, command));
  Counter counter;
  BERTH_CO_DO(co_await remote.follow(lease, "x", 0, counter));
  const double took = seconds_since(start);
  BERTH_CO_DO(co_await remote.close());
  co_return static_cast<double>(counter.bytes) / 1e6 / took;
}

template <class T>
T must(asio::io_context& loop, asio::awaitable<T> task) {
  std::optional<T> out;
  asio::co_spawn(loop, std::move(task), [&](std::exception_ptr thrown, T value) {
    if (thrown) std::rethrow_exception(thrown);
    out = std::move(value);
  });
  loop.restart();
  while (!out) loop.run_one();
  return *std::move(out);
}

template <class T>
T value_of(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

struct RoundTrip {
  double call_us = 0;
  double bare_us = 0;
};

RoundTrip round_trip(asio::io_context& loop, Host& host, const core::PluginId& id,
                     BarePipes& pipes) {
  pipes.microseconds();
  std::vector<double> ours;
  std::vector<double> bare;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(must(loop, many_calls(host, id)));
    bare.push_back(pipes.microseconds());
  }
  return {median(std::move(ours)), median(std::move(bare))};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: plugin_cost KEEPER ECHO FOLDER\n", stderr);
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const std::string echo = argv[2];
  asio::io_context loop{1};
  SystemClock clock;
  SystemRandom random;
  Quiet services;
  HostConfig config{.keeper_program = argv[1], .folder = std::string{argv[3]} + "/execs"};
  Host host{loop.get_executor(), config, services, clock, random};
  const std::size_t slash = echo.rfind('/');
  const InstalledPlugin plugin{.id = core::PluginId::make(random, clock.now()),
                               .manifest = manifest(echo.substr(slash + 1)),
                               .package = {.folder = echo.substr(0, slash)}};
  const Cores cores;
  cores.use_only(0);
  value_of(must(loop, host.start(plugin)));
  RoundTrip together;
  RoundTrip apart;
  {
    BarePipes pipes{launching(argv[1]), echo};
    together = round_trip(loop, host, plugin.id, pipes);
    if (cores.count() > 1) {
      cores.use_only(1);
      apart = round_trip(loop, host, plugin.id, pipes);
    }
  }
  cores.use_all();

  int answered = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_at_once; ++i) {
    asio::co_spawn(
        loop, host.call(plugin.id, {.method = "health"}),
        [&](std::exception_ptr, const CallResult& answer) { answered += answer ? 1 : 0; });
  }
  loop.restart();
  while (answered < calls_at_once && seconds_since(start) < 30) loop.run_one();
  const double all_ms = seconds_since(start) * 1e3;

  std::vector<double> live;
  for (int i = 0; i < 3; ++i) {
    live.push_back(value_of(must(loop, live_output(host, core::CompanyId::make(random, clock.now()),
                                                   core::LeaseId::make(random, clock.now())))));
  }
  value_of(must(loop, host.close()));
  const Starts started = starts(launching(argv[1]), echo);
  std::printf("%.2f %.2f %.2f %.2f %d %.1f %.1f %.1f %.2f %.2f\n", together.call_us,
              together.bare_us, apart.call_us, apart.bare_us, answered, all_ms, median(live),
              bench::bare_pipe_mb_s(std::uint64_t{megabytes} * 1'000'000), started.boxed_ms,
              started.bare_ms);
}
