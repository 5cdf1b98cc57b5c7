#pragma once

#include "base/owned.hpp"
#include "support/temporary_folder.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace berth::security_test {

// The limits of the sandboxes here; hostile programs try to take twice as much.
inline constexpr std::uint64_t files_max = 256;
inline constexpr std::uint64_t processes_max = 64;
inline constexpr std::uint64_t memory_bytes_max = std::uint64_t{128} << 20;
inline constexpr std::uint64_t disk_bytes_max = std::uint64_t{16} << 20;
inline constexpr std::uint64_t inodes_max = 16384;

// Host objects that are open to every user: a file, a process, sockets, a terminal and a descriptor
// that children inherit. A sandbox must not reach any of them.
class HostBait {
 public:
  // The hostile program is also the process to be found.
  explicit HostBait(const std::string& hostile);
  HostBait(const HostBait&) = delete;
  HostBait& operator=(const HostBait&) = delete;
  ~HostBait();

  const std::string& marker() const { return marker_; }
  // For the environment of the process that starts a sandbox.
  std::string secret() const { return "BERTH_SECRET=" + marker_; }
  // The arguments that describe it to a hostile program: key=value.
  std::vector<std::string> arguments() const;

 private:
  void start_process(const std::string& hostile);

  tests::TemporaryFolder folder_;
  std::string marker_;
  Fd inherited_;
  Fd abstract_;
  Fd path_;
  Fd loopback_;
  Fd terminal_;
  std::string terminal_name_;
  std::uint16_t port_ = 0;
  pid_t process_ = 0;
};

}  // namespace berth::security_test
