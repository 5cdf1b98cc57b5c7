#include "cli/keeper_program.hpp"

#include "base/files.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace berth::cli {

Result<std::string> keeper_program(const Settings& settings) {
  std::string path = settings.keeper_program.value_or("");
  if (path.empty()) {
    std::array<char, 4096> self{};
    const ssize_t size = ::readlink("/proc/self/exe", self.data(), self.size());
    if (size <= 0) return io_failure("read", "/proc/self/exe", errno);
    path = parent_of({self.data(), static_cast<std::size_t>(size)}) + "/berth-keeper";
  }
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(Errc::config_invalid, path + " is not there or cannot be executed",
              "put berth-keeper beside berth, or name it: --keeper-program PATH");
}

}  // namespace berth::cli
