#include "security/hostile/attempt.hpp"
#include "security/hostile/burdens.hpp"
#include "security/hostile/neighbour.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

// hostile ATTEMPT [KEY=VALUE...]   tries one thing and prints the verdict
// hostile list                     the names of the attempts
// hostile bait MARKER              a process to be found; ends with its parent
// hostile daemon MARKER            a process that should not be left behind
// hostile effective-user           100 when that is root, for a set-user-id copy of itself
// hostile neighbour ...            see neighbour.hpp
// hostile burden ...               see burdens.hpp
namespace berth::hostile {

namespace {

constexpr int exit_denied = 0;
constexpr int exit_open = 1;
constexpr int exit_limited = 3;
constexpr int exit_usage = 64;
constexpr int exit_effective_root = 100;
constexpr unsigned daemon_seconds = 30;

std::vector<Attempt> all_attempts() {
  std::vector<Attempt> all;
  for (const auto& group : {file_attempts(), process_attempts(), init_attempts(), mount_attempts(),
                            namespace_attempts(), system_call_attempts(), device_attempts(),
                            network_attempts(), information_attempts(), resource_attempts()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

template <class Number>
void read_number(std::string_view text, Number& into) {
  std::from_chars(text.data(), text.data() + text.size(), into);
}

struct Word {
  const char* key;
  std::string Bait::* field;
};
constexpr Word words[] = {{"marker", &Bait::marker},
                          {"file", &Bait::file},
                          {"handle", &Bait::handle},
                          {"device", &Bait::device},
                          {"abstract_socket", &Bait::abstract_socket},
                          {"socket_path", &Bait::socket_path},
                          {"terminal", &Bait::terminal}};

struct Count {
  const char* key;
  std::uint64_t Bait::* field;
};
constexpr Count counts[] = {{"network_namespace", &Bait::network_namespace},
                            {"hostname_namespace", &Bait::hostname_namespace},
                            {"files_max", &Bait::files_max},
                            {"processes_max", &Bait::processes_max},
                            {"memory_bytes_max", &Bait::memory_bytes_max},
                            {"disk_bytes_max", &Bait::disk_bytes_max},
                            {"inodes_max", &Bait::inodes_max}};

void take(Bait& bait, std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view key = argument.substr(0, equals);
  const std::string_view value = argument.substr(equals + 1);
  for (const Word& word : words) {
    if (key == word.key) bait.*word.field = value;
  }
  for (const Count& count : counts) {
    if (key == count.key) read_number(value, bait.*count.field);
  }
  if (key == "pid") read_number(value, bait.pid);
  if (key == "port") read_number(value, bait.port);
}

int tell(const Verdict& verdict) {
  switch (verdict.outcome) {
    case Outcome::denied: std::printf("denied %s\n", verdict.text.c_str()); return exit_denied;
    case Outcome::limited: std::printf("limited %s\n", verdict.text.c_str()); return exit_limited;
    case Outcome::open: std::printf("OPEN %s\n", verdict.text.c_str()); return exit_open;
  }
  return exit_usage;
}

int attempt(std::string_view name, const Bait& bait) {
  for (const Attempt& known : all_attempts()) {
    if (known.name == name) return tell(known.run(bait));
  }
  std::fprintf(stderr, "there is no attempt of this name\n");
  return exit_usage;
}

int run(const std::vector<std::string_view>& arguments) {
  const std::string_view name = arguments[0];
  if (name == "list") {
    for (const Attempt& known : all_attempts()) std::puts(known.name.data());
    return 0;
  }
  if (name == "bait") {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  if (name == "daemon") {
    ::alarm(daemon_seconds);
    for (;;) ::pause();
  }
  if (name == "effective-user") return ::geteuid() == 0 ? exit_effective_root : 0;
  if (name == "neighbour") return neighbour(arguments);
  if (name == "burden") return burden(arguments);
  Bait bait;
  for (const std::string_view argument : arguments) take(bait, argument);
  return attempt(name, bait);
}

}  // namespace

}  // namespace berth::hostile

int main(int count, char** arguments) {
  if (count < 2) return berth::hostile::exit_usage;
  return berth::hostile::run({arguments + 1, arguments + count});
}
