#include "keeper/sandbox/landlock.hpp"

#include "base/owned.hpp"
#include "keeper/sandbox/skeleton.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace berth::keeper::sandbox {
namespace {

// As the kernel defines them; the build machine's headers may be older.
struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scopes = 0;
};
struct [[gnu::packed]] PathRule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};
struct PortRule {
  std::uint64_t allowed = 0;
  std::uint64_t port = 0;
};

constexpr unsigned ask_version = 1;
constexpr int path_beneath = 1;
constexpr int net_port = 2;
constexpr int first_abi_with_scopes = 6;
constexpr int first_abi_with_devices = 5;
constexpr int first_abi_with_network = 4;
constexpr int first_abi_with_truncate = 3;
constexpr int first_abi_with_refer = 2;
constexpr std::uint64_t execute = 1 << 0;
constexpr std::uint64_t may_write_file = 1 << 1;
constexpr std::uint64_t may_read_file = 1 << 2;
constexpr std::uint64_t may_read_folder = 1 << 3;
constexpr std::uint64_t make_char = 1 << 6;
constexpr std::uint64_t make_socket = 1 << 9;
constexpr std::uint64_t make_block = 1 << 11;
constexpr std::uint64_t refer = 1 << 13;
constexpr std::uint64_t truncate = 1 << 14;
constexpr std::uint64_t use_device = 1 << 15;
constexpr std::uint64_t all_of_first_abi = (1 << 13) - 1;
constexpr std::uint64_t about_files =
    execute | may_write_file | may_read_file | truncate | use_device;
constexpr std::uint64_t reading = may_read_file | may_read_folder;
constexpr std::uint64_t nodes = make_char | make_block | make_socket | use_device;
constexpr std::uint64_t connect_tcp = 2;
constexpr std::uint64_t bind_and_connect = 3;
constexpr std::uint64_t abstract_sockets = 1;
constexpr std::uint64_t signals = 2;

// From /etc only files that reveal nothing private and that programs complain about when they are
// missing.
constexpr std::array open_to_read{"/etc/alternatives",  "/etc/ld.so.cache", "/etc/ld.so.conf",
                                  "/etc/ld.so.conf.d",  "/etc/ssl/certs",   "/etc/passwd",
                                  "/etc/group",         "/etc/hosts",       "/etc/localtime",
                                  "/etc/nsswitch.conf", "/etc/python3",     "/etc/python3.11",
                                  "/etc/python3.12",    "/etc/python3.13",  "/etc/ssl/openssl.cnf"};
constexpr std::array open_devices{"/dev/null",   "/dev/zero",    "/dev/full",
                                  "/dev/random", "/dev/urandom", "/dev/tty"};

// Collects rules; the first failure is kept.
class Rules {
 public:
  explicit Rules(const Ruleset& denied, std::size_t size)
      : denied_(denied.files),
        rules_(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &denied, size, 0))) {
    if (!rules_) error_number_ = errno;
  }

  // A missing path needs no rule.
  void allow(const char* path, std::uint64_t wanted) {
    const Fd found{::open(path, O_PATH | O_CLOEXEC)};
    if (found) return allow(found.get(), wanted);
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) fail(errno);
  }
  void allow(int object, std::uint64_t wanted) {
    struct stat seen{};
    if (::fstat(object, &seen) != 0) return fail(errno);
    if (!S_ISDIR(seen.st_mode)) wanted &= about_files;
    const PathRule rule{.allowed = wanted & denied_, .parent = object};
    if (::syscall(SYS_landlock_add_rule, rules_.get(), path_beneath, &rule, 0) != 0) fail(errno);
  }
  // A folder, by path or descriptor: all rights except for device nodes and sockets.
  void allow_writing(auto folder) { allow(folder, denied_ & ~nodes); }
  void allow_port(std::uint16_t port) {
    const PortRule rule{.allowed = connect_tcp, .port = port};
    if (::syscall(SYS_landlock_add_rule, rules_.get(), net_port, &rule, 0) != 0) fail(errno);
  }
  int enforce() {
    if (error_number_ != 0) return error_number_;
    return ::syscall(SYS_landlock_restrict_self, rules_.get(), 0) == 0 ? 0 : errno;
  }

 private:
  void fail(int error_number) {
    if (error_number_ == 0) error_number_ = error_number;
  }

  std::uint64_t denied_;
  Fd rules_;
  int error_number_ = 0;
};

// Denies everything that this kernel can deny, except running the machine's programs and reading
// what they need. `network` is what to deny of the network if the kernel can.
Rules deny_all_but_programs(int abi, std::uint64_t network, Features& features) {
  Ruleset denied{.files = all_of_first_abi | refer};
  std::size_t size = offsetof(Ruleset, network);
  if (abi >= first_abi_with_truncate) denied.files |= truncate;
  if (abi >= first_abi_with_devices) denied.files |= use_device;
  if (abi >= first_abi_with_network) {
    denied.network = network;
    size = offsetof(Ruleset, scopes);
  }
  if (abi >= first_abi_with_scopes) {
    denied.scopes = abstract_sockets | signals;
    size = sizeof denied;
    features.add(Feature::signal_scope);
  }
  Rules rules{denied, size};
  rules.allow("/usr", reading | execute);
  for (const char* path : usr_links) rules.allow(path, reading | execute);
  for (const char* path : open_to_read) rules.allow(path, reading);
  rules.allow("/proc", reading);
  for (const char* path : open_devices)
    rules.allow(path, may_read_file | may_write_file | use_device);
  return rules;
}

}  // namespace

int landlock_version() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
  return abi < first_abi_with_refer ? 0 : static_cast<int>(abi);
}

int leave_only_folder(int folder, Features& features) {
  const int abi = landlock_version();
  if (abi == 0) return EOPNOTSUPP;
  Rules rules = deny_all_but_programs(abi, bind_and_connect, features);
  rules.allow_writing(folder);
  return rules.enforce();
}

int leave_only(const LandlockExtent& extent, Features& features) {
  const int abi = landlock_version();
  if (abi == 0) return EOPNOTSUPP;
  Rules rules = deny_all_but_programs(abi, connect_tcp, features);
  rules.allow("/etc/resolv.conf", reading);
  for (const std::string& path : extent.readable) rules.allow(path.c_str(), reading | execute);
  for (const std::string& path : extent.writable) rules.allow_writing(path.c_str());
  if (abi >= first_abi_with_network) {
    for (const std::uint16_t port : extent.ports) rules.allow_port(port);
  }
  return rules.enforce();
}

bool landlock_limits_ports() {
  return landlock_version() >= first_abi_with_network;
}

int restrict_with_landlock() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
  if (abi < 0) return errno;
  // Before this right existed, every rename between directories was denied.
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
