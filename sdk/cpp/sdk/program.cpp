#include "sdk/program.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"

#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <cstdio>
#include <string_view>

namespace berth::sdk {

bool asks_for_manifest(int argc, char** argv) {
  return argc == 2 && std::string_view{argv[1]} == "--manifest";
}

std::string worker_path(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "worker";
  return "./" + std::string{path.substr(path.rfind('/') + 1)};
}

int print_manifest(const bj::object& manifest) {
  const std::string text = bj::serialize(manifest) + "\n";
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : 1;
}

HostPipes take_host_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
  HostPipes pipes{.in = Fd{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)},
                  .out = Fd{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)}};
  const Fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  BERTH_ASSERT(pipes.in && pipes.out && nothing);
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return pipes;
}

std::string program_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return parent_of(std::string{path.data(), static_cast<std::size_t>(length > 0 ? length : 0)});
}

}  // namespace berth::sdk
