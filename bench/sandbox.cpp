// sandbox MODE KEEPER FOLDER ARGUMENT... < COMMANDS: what a sandbox costs, compared with bare
// programs and other tools, measured alternately. COMMANDS are lines `name<TAB>word<TAB>word...`;
// "@" in a word becomes a number that is used once. Prints lines `name value...`; times are
// microseconds, their p50, p95 and least.
//
//   start KEEPER FOLDER ROUNDS IDLE_MS   p50 and p95 of each command, of posix_spawn, and of ours:
//                                        to the exit of `true`, with the end of the sandbox, the
//                                        first exec in a ready one, the next in it
//   crowd KEEPER FOLDER WAYS SECONDS     starts per second of each command and of ours; commands
//                                        per second in ready sandboxes, and in one per thread
//   live KEEPER FOLDER COUNT ROUNDS      kilobytes of each idle sandbox, as available memory, slab,
//                                        and the sum of the parts; p50 of a start and of an exec
//                                        beside one and beside all
//   end KEEPER FOLDER PROCESSES ROUNDS   p50 and p95 of the end of one full of stubborn processes
//   heap KEEPER FOLDER MEBIBYTES ROUNDS  p50 of a start by a small and by a large process

#include "base/files.hpp"
#include "keeper/holder/prefork.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace berth;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "sandbox: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message + " " + result.error().remedy);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class Work>
double microseconds(Work&& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

std::atomic<std::uint64_t> used_once{0};

std::string fresh_number() {
  return std::to_string(::getpid()) + "-" + std::to_string(++used_once);
}

struct Command {
  std::string name;
  Words words;
};

std::vector<Command> read_commands() {
  std::vector<Command> commands;
  std::string line;
  while (std::getline(std::cin, line)) {
    Words words;
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find('\t', at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    if (words.size() < 2) give_up("a command has a name and words: " + line);
    commands.push_back({words[0], Words(words.begin() + 1, words.end())});
  }
  return commands;
}

void spawn(const Command& command) {
  Words words = command.words;
  for (std::string& word : words) {
    if (const std::size_t at = word.find('@'); at != std::string::npos) {
      word.replace(at, 1, fresh_number());
    }
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<char*, 1> none{nullptr};
  pid_t pid = 0;
  int status = 0;
  const bool ran = ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), none.data()) == 0 &&
                   ::waitpid(pid, &status, 0) == pid && status == 0;
  if (!ran) give_up(command.name + " did not succeed");
}

const Command bare_true{"posix_spawn", {"/bin/true"}};

// Limits on everything, like a lease.
keeper::sandbox::Plan usual_plan() {
  keeper::sandbox::Plan plan;
  plan.limits = {.memory_bytes = 512ULL << 20, .pids = 256, .cpu_millis = 2000};
  return plan;
}

keeper::Exec command_of(const std::string& id, Words argv) {
  return {.exec_id = id,
          .argv = std::move(argv),
          .environment = {"PATH=/usr/bin:/bin"},
          .cwd = "/",
          .output_bytes_max = 1 << 20};
}

class Sandboxes {
 public:
  Sandboxes(std::string program, std::string folder)
      : prefork_({.program = std::move(program)}), folder_(std::move(folder)) {}

  class One {
   public:
    One(std::string folder, Fd control) : folder_(std::move(folder)), client_(std::move(control)) {}
    void run_true() { run({"/bin/true"}); }
    void run(Words argv, keeper::Leftovers leftovers = keeper::Leftovers::kill) {
      keeper::Exec exec = command_of("x" + std::to_string(++execs_), std::move(argv));
      exec.leftovers = leftovers;
      check(must(client_.run(exec)));
    }
    // All in one step, as for a single command in a sandbox.
    keeper::Confined confine_and_run_true() {
      const keeper::Exec exec = command_of("x" + std::to_string(++execs_), {"/bin/true"});
      const std::uint64_t confined = client_.send(keeper::Confine{.plan = usual_plan()});
      const std::uint64_t started = client_.send(exec);
      const std::uint64_t ended = client_.send(keeper::Wait{.exec_id = exec.exec_id});
      keeper::Confined how = must(client_.answer_to<keeper::Confined>(confined));
      must(client_.answer_to<keeper::Started>(started));
      check(must(client_.answer_to<keeper::Ended>(ended)));
      return how;
    }
    // When this returns nothing of the sandbox is left; its keeper is about to exit.
    void end() { must(client_.stop(0ms)); }
    // Waits for the keeper's exit.
    void reap() const {
      const Fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid(), 0))};
      pollfd ended{process.get(), POLLIN, 0};
      if (process) ::poll(&ended, 1, -1);
    }
    void end_and_reap() {
      end();
      reap();
    }
    pid_t pid() const { return must(keeper::look_at_keeper(folder_)).identity.pid; }
    keeper::KeeperClient& client() { return client_; }

   private:
    static void check(const keeper::Ended& ended) {
      if (ended.outcome != keeper::Outcome::exited || ended.code != 0)
        give_up("a command in a sandbox did not succeed");
    }

    std::string folder_;
    keeper::KeeperClient client_;
    int execs_ = 0;
  };

  One start() {
    One one = ask();
    note(must(one.client().confine(usual_plan())));
    return one;
  }
  One start_and_run_true() {
    One one = ask();
    note(one.confine_and_run_true());
    return one;
  }

 private:
  One ask() {
    const std::string folder = folder_ + "/" + fresh_number();
    return {folder, must(prefork_.start_keeper(folder))};
  }
  // Less isolation costs less: the numbers are meaningless without this.
  void note(const keeper::Confined& confined) {
    for (const keeper::Missing& missing : confined.missing) {
      if (noted_.exchange(true)) return;
      std::fprintf(stderr, "missing: %s: %s\n", missing.feature.c_str(), missing.reason.c_str());
    }
  }

  keeper::KeeperPrefork prefork_;
  std::string folder_;
  std::atomic<bool> noted_{false};
};

struct Times {
  std::map<std::string, std::vector<double>> by_name;

  void add(const std::string& name, double microseconds) { by_name[name].push_back(microseconds); }
  double p50(const std::string& name) const { return percentile(by_name.at(name), 0.5); }
  void print() const {
    for (const auto& [name, values] : by_name) {
      std::printf("%s %.1f %.1f %.1f\n", name.c_str(), percentile(values, 0.5),
                  percentile(values, 0.95), percentile(values, 0));
    }
  }
};

void time_start(Sandboxes& sandboxes, Times& times) {
  std::optional<Sandboxes::One> one;
  const double to_exit = microseconds([&] { one = sandboxes.start_and_run_true(); });
  times.add("cold", to_exit);
  times.add("cold-and-end", to_exit + microseconds([&] { one->end(); }));
  one->reap();
}

// Alternates, so that machine load affects all of them equally.
void compare_starts(Sandboxes& sandboxes, int rounds, std::chrono::milliseconds idle) {
  const std::vector<Command> commands = read_commands();
  Sandboxes::One held = sandboxes.start();
  must(held.client().renew(3min));
  Times times;
  for (int round = -1; round < rounds; ++round) {
    Times taken;
    const auto rest = [&] { std::this_thread::sleep_for(idle); };
    rest();
    taken.add(bare_true.name, microseconds([] { spawn(bare_true); }));
    for (const Command& command : commands) {
      rest();
      taken.add(command.name, microseconds([&] { spawn(command); }));
    }
    rest();
    time_start(sandboxes, taken);
    rest();
    taken.add("held", microseconds([&] { held.run_true(); }));
    Sandboxes::One ready = sandboxes.start();
    rest();
    taken.add("ready", microseconds([&] { ready.run_true(); }));
    ready.end_and_reap();
    if (round < 0) continue;  // the first round warms up
    for (const auto& [name, values] : taken.by_name) times.add(name, values.front());
  }
  held.end_and_reap();
  times.print();
}

// Seconds until each of the threads is done.
double seconds_of(int ways, const std::function<void(int)>& work) {
  const auto began = Clock::now();
  std::vector<std::jthread> threads;
  for (int way = 0; way < ways; ++way) threads.emplace_back(work, way);
  threads.clear();  // waits for each
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double starts_a_second(int ways, std::chrono::seconds length,
                       const std::function<void(int)>& start) {
  std::atomic<int> done{0};
  const auto until = Clock::now() + length;
  const double seconds = seconds_of(ways, [&](int way) {
    for (; Clock::now() < until; ++done) start(way);
  });
  return done / seconds;
}

using Ones = std::vector<std::vector<Sandboxes::One>>;

// As many for each thread as a pool has.
Ones made_before(Sandboxes& sandboxes, int ways, int each) {
  Ones ones(static_cast<std::size_t>(ways));
  seconds_of(ways, [&](int way) {
    for (int i = 0; i < each; ++i) {
      ones[static_cast<std::size_t>(way)].push_back(sandboxes.start());
      must(ones[static_cast<std::size_t>(way)].back().client().renew(3min));
    }
  });
  return ones;
}

void end_all(Ones& ones) {
  for (std::vector<Sandboxes::One>& of_one : ones) {
    for (Sandboxes::One& one : of_one) one.end();
  }
}

// One command in each; creation before the burst and ending after it are not timed.
double burst_a_second(Sandboxes& sandboxes, int ways) {
  constexpr int each = 40;
  Ones ready = made_before(sandboxes, ways, each);
  const double seconds = seconds_of(ways, [&](int way) {
    for (Sandboxes::One& one : ready[static_cast<std::size_t>(way)]) one.run_true();
  });
  end_all(ready);
  return ways * each / seconds;
}

double held_a_second(Sandboxes& sandboxes, int ways, std::chrono::seconds length) {
  Ones held = made_before(sandboxes, ways, 1);
  const double rate = starts_a_second(
      ways, length, [&](int way) { held[static_cast<std::size_t>(way)].front().run_true(); });
  end_all(held);
  return rate;
}

void compare_crowds(Sandboxes& sandboxes, int ways, std::chrono::seconds length) {
  const std::vector<Command> commands = read_commands();
  const auto ours = [&](int) {
    sandboxes.start_and_run_true().end();  // the exit is not awaited
  };
  Times rates;
  for (int round = 0; round < 3; ++round) {
    for (const Command& command : commands) {
      rates.add(command.name, starts_a_second(ways, length, [&](int) { spawn(command); }));
    }
    rates.add("ours", starts_a_second(ways, length, ours));
    rates.add("ready", burst_a_second(sandboxes, ways));
    rates.add("held", held_a_second(sandboxes, ways, length));
  }
  for (const auto& [name, values] : rates.by_name) {
    std::printf("%s %.1f\n", name.c_str(), percentile(values, 0.5));
  }
}

double line_kb(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key + ":");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + key.size() + 1, nullptr);
}

struct Memory {
  double available_kb = 0;
  double slab_kb = 0;
  double kernel_kb = 0;  // slab, stacks, page tables, per-CPU areas and tmpfs contents
};

// Cached names and inodes that the kernel could drop are not a sandbox's cost. Without permission
// to drop them, they are counted.
void forget_what_can_be_read_again() {
  const Fd file{::open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC)};
  if (file && ::write(file.get(), "2", 1) != 1) give_up("the caches of the kernel stay");
}

Memory memory_now() {
  forget_what_can_be_read_again();
  const std::string text = must(read_file("/proc/meminfo", 65536));
  const double slab = line_kb(text, "Slab");
  return {.available_kb = line_kb(text, "MemAvailable"),
          .slab_kb = slab,
          .kernel_kb = slab + line_kb(text, "KernelStack") + line_kb(text, "PageTables") +
                       line_kb(text, "Percpu") + line_kb(text, "Shmem")};
}

double own_kb(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup", 65536);
  return text ? line_kb(*text, "Pss") : 0;
}

double processes_kb(std::vector<Sandboxes::One>& live) {
  double sum = 0;
  for (const Sandboxes::One& one : live) {
    sum += own_kb(one.pid());
    for (const pid_t below : keeper::descendants_of(one.pid())) sum += own_kb(below);
  }
  return sum;
}

void time_beside(Sandboxes& sandboxes, int rounds, const std::string& suffix, Times& times) {
  Sandboxes::One held = sandboxes.start();
  Times taken;
  for (int round = 0; round < rounds; ++round) {
    time_start(sandboxes, taken);
    taken.add("held", microseconds([&] { held.run_true(); }));
    taken.add("spawn", microseconds([] { spawn(bare_true); }));
  }
  held.end_and_reap();
  for (const char* name : {"cold", "held", "spawn"}) {
    for (const double value : taken.by_name[name]) times.add(name + suffix, value);
  }
}

void measure_live(Sandboxes& sandboxes, int count, int rounds) {
  Times times;
  time_beside(sandboxes, rounds, "-beside-one", times);
  const Memory before = memory_now();
  std::vector<Sandboxes::One> live;
  for (int i = 0; i < count; ++i) {
    live.push_back(sandboxes.start());
    live.back().run_true();
    must(live.back().client().renew(3min));
  }
  const Memory after = memory_now();
  const double processes = processes_kb(live);
  time_beside(sandboxes, 2 * rounds, "-beside-all", times);
  std::vector<double> ends;
  for (Sandboxes::One& one : live) ends.push_back(microseconds([&] { one.end(); }));
  for (const Sandboxes::One& one : live) one.reap();
  // Before and after, so that a machine that slows down meanwhile does not look like the cost of
  // many.
  time_beside(sandboxes, rounds, "-beside-one", times);
  times.print();
  std::printf("available-kb %.0f\nslab-kb %.0f\nparts-kb %.0f\nprocesses-kb %.0f\nend-idle %.1f\n",
              (before.available_kb - after.available_kb) / count,
              (after.slab_kb - before.slab_kb) / count,
              (after.kernel_kb - before.kernel_kb + processes) / count, processes / count,
              percentile(ends, 0.5));
}

// Each has left its session and its parent, and ignores every signal that can be ignored.
std::string stubborn_script(int processes) {
  return "i=0; while [ $i -lt " + std::to_string(processes) +
         " ]; do (trap '' TERM HUP INT QUIT; setsid sleep 600 <&- >/dev/null 2>&1 &);"
         " i=$((i+1)); done";
}

void measure_ends(Sandboxes& sandboxes, int processes, int rounds) {
  Times times;
  for (int round = 0; round < rounds; ++round) {
    Sandboxes::One one = sandboxes.start();
    one.run({"/bin/sh", "-c", stubborn_script(processes)}, keeper::Leftovers::linger);
    const double gone = microseconds([&] { one.end(); });
    times.add("end", gone);
    times.add("exit", gone + microseconds([&] { one.reap(); }));
  }
  times.print();
}

void measure_heap(Sandboxes& sandboxes, std::size_t mebibytes, int rounds) {
  Times times;
  std::vector<char> heap;
  const auto take = [&](const std::string& name) {
    Times taken;
    for (int round = 0; round < rounds; ++round) time_start(sandboxes, taken);
    for (const double value : taken.by_name["cold"]) times.add(name, value);
  };
  for (int turn = 0; turn < 3; ++turn) {
    take("small");
    heap.assign(mebibytes << 20, 'x');
    take("large");
    std::vector<char>{}.swap(heap);
  }
  times.print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) give_up("usage: sandbox MODE KEEPER FOLDER NUMBER NUMBER");
  const std::string mode = argv[1];
  const std::string folder = argv[3];
  must(keeper::make_state_root(folder));
  Sandboxes sandboxes{argv[2], folder};
  const int first = std::atoi(argv[4]);
  const int second = std::atoi(argv[5]);
  if (mode == "start") {
    compare_starts(sandboxes, first, std::chrono::milliseconds{second});
  } else if (mode == "crowd") {
    compare_crowds(sandboxes, first, std::chrono::seconds{second});
  } else if (mode == "live") {
    measure_live(sandboxes, first, second);
  } else if (mode == "end") {
    measure_ends(sandboxes, first, second);
  } else if (mode == "heap") {
    measure_heap(sandboxes, static_cast<std::size_t>(first), second);
  } else {
    give_up("no mode " + mode);
  }
  return 0;
}
