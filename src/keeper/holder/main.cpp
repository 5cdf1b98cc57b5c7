#include "keeper/holder/keeper.hpp"
#include "keeper/holder/prefork.hpp"
#include "keeper/holder/relay.hpp"
#include "keeper/plugin_worker/plugin_worker.hpp"
#include "keeper/protocol/version.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace {

using berth::Error;
using berth::Fd;
using berth::Result;

constexpr int control_fd = 3;

int say(const Error& error) {
  std::fprintf(stderr, "berth-keeper: %s (%s)\n", error.message.c_str(),
               std::string{name_of(error.code)}.c_str());
  return 1;
}

// The connection to the process that started the keeper, if it passed one.
Fd inherited_client() {
  int kind = 0;
  socklen_t size = sizeof kind;
  if (::getsockopt(control_fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM) {
    return {};
  }
  ::fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  return Fd{control_fd};
}

int hold(const std::string& folder, std::span<char> command_line) {
  ::setsid();  // fails if the caller has already created the session
  Fd client = inherited_client();
  ::close_range(client ? control_fd + 1 : control_fd, ~0U, 0);
  const rlimit open_files = berth::keeper::prepare_to_hold();
  auto identity = berth::keeper::identity_of(::getpid());
  if (!identity) return say(identity.error());
  auto keeper = berth::keeper::Keeper::open(
      folder, std::move(client),
      {.identity = *std::move(identity), .open_files = open_files, .command_line = command_line});
  if (!keeper) return say(keeper.error());
  (*keeper)->run();
  return 0;
}

// The kernel stores the arguments one after the other.
std::span<char> bytes_of(std::span<char*> words) {
  char* end = words.back() + std::strlen(words.back());
  return {words.front(), static_cast<std::size_t>(end - words.front())};
}

// Continues in an orphaned child, so that the process that started it need not wait for its end.
int serve_prefork(std::span<char> command_line) {
  ::fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  ::close_range(control_fd + 1, ~0U, 0);
  const pid_t pid = ::fork();
  if (pid != 0) return pid > 0 ? 0 : 1;
  berth::keeper::run_prefork(Fd{control_fd}, command_line);
}

int serve_stdio(const std::string& root) {
  const Result<> served = berth::keeper::serve_stdio(root);
  return served ? 0 : say(served.error());
}

int run_plugin(std::span<char*> words) {
  const auto worker = berth::keeper::parse_plugin_worker(words);
  if (!worker) return say(worker.error());
  berth::keeper::run_plugin_worker(*worker);
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words{argv, static_cast<std::size_t>(argc)};
  const std::string_view verb = words.size() > 1 ? words[1] : "";
  if (verb == "hold" && words.size() == 3) return hold(words[2], bytes_of(words));
  if (verb == "prefork" && words.size() == 3) return serve_prefork(bytes_of(words));
  if (verb == "serve-stdio" && words.size() == 3) return serve_stdio(words[2]);
  if (verb == "plugin") return run_plugin(words.subspan(2));
  if (verb == "version" && words.size() == 2) {
    std::printf("%s\n", std::string{berth::keeper::version()}.c_str());
    return 0;
  }
  std::fprintf(stderr,
               "usage: berth-keeper hold FOLDER | prefork ROOM | serve-stdio ROOT | plugin UID GID "
               "MEMORY_BYTES [box OPTION...] -- PROGRAM [ARG...] | version\n");
  return 2;
}
