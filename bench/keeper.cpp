// keeper PROGRAM FOLDER: what holding a command costs, compared with a bare one, measured
// alternately. Prints four pairs, ours and bare: microseconds of `true` in a held keeper and by
// posix_spawn and wait; of `true` in a new keeper, and bare again; MB/s of output through a keeper
// into its file, and through a pipe from `cat`; resident kilobytes of an idle keeper, and bytes of
// the program.

#include "bare_pipe.hpp"
#include "base/files.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace berth;
using namespace std::chrono_literals;

constexpr int rounds = 7;
constexpr int execs_per_round = 100;
constexpr int keepers_per_round = 10;
constexpr std::uint64_t output_bytes = 1'000'000'000;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "keeper: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

double microseconds(int times, const std::function<void(int)>& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work(i);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
             .count() /
         times;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void spawn_true() {
  std::array<char*, 2> argv{const_cast<char*>("true"), nullptr};
  std::array<char*, 1> none{nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/bin/true", nullptr, nullptr, argv.data(), none.data()) != 0) {
    give_up("cannot spawn /bin/true");
  }
  ::waitpid(pid, nullptr, 0);
}

keeper::Exec command(const std::string& id, std::vector<std::string> argv) {
  return {.exec_id = id, .argv = std::move(argv), .cwd = "/", .output_bytes_max = 1ULL << 40};
}

struct Held {
  pid_t pid = 0;
  keeper::KeeperClient client;
};

Held start(const std::string& program, const std::string& folder) {
  auto spawned = must(keeper::spawn_keeper({.program = program, .folder = folder}));
  return {spawned.pid, keeper::KeeperClient{std::move(spawned.control)}};
}

void stop(Held& held) {
  must(held.client.stop(0ms));
  ::waitpid(held.pid, nullptr, 0);
}

double keeper_mb_s(Held& held, const std::string& folder, int round) {
  const std::string id = "out" + std::to_string(round);
  const std::string script = bench::output_script(output_bytes);
  const double took = microseconds(
      1, [&](int) { must(held.client.run(command(id, {"/bin/sh", "-c", script}), 120s)); });
  ::unlink((folder + "/" + keeper::output_file(id)).c_str());
  return static_cast<double>(output_bytes) / took;
}

double resident_kb(pid_t pid) {
  const std::string text = must(read_file("/proc/" + std::to_string(pid) + "/status", 65536));
  return std::strtod(text.c_str() + text.find("VmRSS:") + 6, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) give_up("usage: keeper PROGRAM FOLDER");
  const std::string program = argv[1];
  const std::string folder = argv[2];
  must(keeper::make_state_root(folder));
  // Like leases: a folder's place on the disk depends on its name, which is never reused.
  const std::string unique = std::to_string(keeper::wall_clock_us());
  const std::string held_folder = folder + "/held-" + unique;
  const std::string cold_folders = folder + "/cold-" + unique + "-";
  Held held = start(program, held_folder);
  must(held.client.renew(10min));
  std::vector<double> exec_us;
  std::vector<double> cold_us;
  std::vector<double> bare_us;
  std::vector<double> through;
  std::vector<double> piped;
  for (int round = 0; round < rounds; ++round) {
    const std::string prefix = std::to_string(round) + "-";
    exec_us.push_back(microseconds(execs_per_round, [&](int i) {
      must(held.client.run(command(prefix + std::to_string(i), {"/bin/true"})));
    }));
    bare_us.push_back(microseconds(execs_per_round, [](int) { spawn_true(); }));
    std::vector<Held> colds;
    cold_us.push_back(microseconds(keepers_per_round, [&](int i) {
      colds.push_back(start(program, cold_folders + prefix + std::to_string(i)));
      must(colds.back().client.run(command("x", {"/bin/true"})));
    }));
    for (Held& cold : colds) stop(cold);
  }
  const double resident = resident_kb(held.pid);
  for (int round = 0; round < 3; ++round) {
    through.push_back(keeper_mb_s(held, held_folder, round));
    piped.push_back(bench::bare_pipe_mb_s(output_bytes));
  }
  stop(held);
  struct stat file{};
  ::stat(program.c_str(), &file);
  std::printf("%.1f %.1f %.1f %.1f %.0f %.0f %.0f %lld\n", median(exec_us), median(bare_us),
              median(cold_us), median(bare_us), median(through), median(piped), resident,
              static_cast<long long>(file.st_size));
  return 0;
}
