#include "keeper/sandbox/landlock.hpp"

#include "base/owned.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace berth::keeper::sandbox {
namespace {

// As the kernel defines them; headers of the build machine may be older.
struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scopes = 0;
};
struct [[gnu::packed]] PathRule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

constexpr unsigned ask_version = 1;
constexpr int path_beneath = 1;
constexpr int first_abi_with_scopes = 6;
constexpr int first_abi_with_refer = 2;
constexpr std::uint64_t make_char = 1 << 6;
constexpr std::uint64_t make_block = 1 << 11;
constexpr std::uint64_t refer = 1 << 13;
constexpr std::uint64_t abstract_sockets = 1;
constexpr std::uint64_t signals = 2;

}  // namespace

int restrict_with_landlock() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
  if (abi < 0) return errno;
  // Before it could be allowed, every rename between directories was denied.
  if (abi < first_abi_with_refer) return EOPNOTSUPP;
  Ruleset ruleset{.files = make_char | make_block | refer};
  std::size_t size = offsetof(Ruleset, network);
  if (abi >= first_abi_with_scopes) {
    ruleset.scopes = abstract_sockets | signals;
    size = sizeof ruleset;
  }
  const Fd rules{static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, size, 0))};
  if (!rules) return errno;
  const Fd root{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!root) return errno;
  const PathRule anywhere{.allowed = refer, .parent = root.get()};
  if (::syscall(SYS_landlock_add_rule, rules.get(), path_beneath, &anywhere, 0) != 0) return errno;
  return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 ? 0 : errno;
}

}  // namespace berth::keeper::sandbox
