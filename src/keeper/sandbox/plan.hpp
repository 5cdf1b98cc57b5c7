#pragma once

#include "base/result.hpp"
#include "keeper/protocol/fields.hpp"
#include "keeper/sandbox/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// A sandbox's specification, as a value: made by a provider, carried by the request `confine`,
// validated by check(), and turned into kernel objects by enter(). docs/sandbox.md explains each
// part.
namespace berth::keeper::sandbox {

namespace plan_limits {

inline constexpr std::size_t layers = 48;
inline constexpr std::size_t binds = 64;
inline constexpr std::size_t directories = 64;
inline constexpr std::size_t rlimits = 16;
inline constexpr std::size_t groups = 64;
inline constexpr std::size_t path_bytes = 4095;
inline constexpr std::size_t hostname_bytes = 64;
inline constexpr std::uint32_t ids = 65536;  // per sandbox

}  // namespace plan_limits

// How strong a sandbox is, weakest first, so that levels can be compared. docs/sandbox.md#levels.
enum class Level : std::uint8_t { minimal, weak, standard, strong, count_ };
std::string_view name_of(Level level);

// What the root filesystem is built on.
enum class Base : std::uint8_t {
  host,    // the host's /usr, read-only, and a skeleton of the rest
  layers,  // only what the layers hold
  count_,
};

// A sandbox of level `minimal` has no root of its own: its files are in this folder of its keeper.
inline constexpr std::string_view box_folder = "box";

enum class Access : std::uint8_t { read_only, writable, count_ };

// What commands may do inside.
enum class Identity : std::uint8_t {
  user,  // only what their ids allow: no capability
  root,  // they are 0, with capabilities over the sandbox's own ids only
};

// The commands' identity, in ids that the sandbox sees. Outside they are ids that no user has, or
// the keeper's own user.
struct User {
  std::uint32_t uid = 1000;
  std::uint32_t gid = 1000;
  // Besides gid. If the keeper is not root there are none, and `confined` reports that.
  std::vector<std::uint32_t> groups = {};

  Identity identity() const { return uid == 0 ? Identity::root : Identity::user; }
  friend bool operator==(const User&, const User&) = default;
  static constexpr auto fields() {
    return std::tuple{field("uid", &User::uid), field("gid", &User::gid),
                      field("groups", &User::groups)};
  }
};

// A host directory or file that is visible in the sandbox.
struct Bind {
  std::string source = {};
  std::string target = {};
  Access access = Access::read_only;
  friend bool operator==(const Bind&, const Bind&) = default;
  static constexpr auto fields() {
    return std::tuple{field("source", &Bind::source), field("target", &Bind::target),
                      field("access", &Bind::access)};
  }
};

// A setrlimit(2) limit for everything inside.
struct Rlimit {
  std::int32_t resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  friend bool operator==(const Rlimit&, const Rlimit&) = default;
  static constexpr auto fields() {
    return std::tuple{field("resource", &Rlimit::resource), field("soft", &Rlimit::soft),
                      field("hard", &Rlimit::hard)};
  }
};

// Weakenings. Each is a type, so that a search for its name finds every place that permits it.
struct AllowPtrace {  // debuggers: ptrace, process_vm_readv and personality
  static constexpr std::uint32_t bit = 1;
};
struct AllowNestedNamespaces {  // sandboxes inside: user namespaces and what they grant
  static constexpr std::uint32_t bit = 2;
};
struct AllowHostNetwork {  // the host's interfaces, loopback and abstract sockets
  static constexpr std::uint32_t bit = 4;
};

struct Plan {
  Base base = Base::host;
  std::vector<std::string> layers = {};  // directories, bottom to top, read-only
  // Where writes to the root go: this directory (`upper` and `work` are made in it), or memory.
  std::string upper_folder = {};
  std::uint64_t upper_bytes = std::uint64_t{256} << 20;  // for memory only
  std::uint64_t upper_inodes = 65536;
  std::vector<Bind> binds = {};
  // Created if they are missing, and owned by the sandbox's user.
  std::vector<std::string> directories = {};
  // The folder in the root that survives a remake; empty: none. Only for a root in memory.
  std::string kept_folder = {};
  // These two share one pool of bytes and of files: each may use what the other leaves.
  std::uint64_t tmp_bytes = std::uint64_t{256} << 20;  // 0: /tmp is part of the root
  std::uint64_t shm_bytes = std::uint64_t{64} << 20;
  std::uint64_t scratch_inodes = 65536;
  std::string hostname = "sandbox";
  User user = {};
  // First of the sandbox's 65536 host ids; 0: chosen by the keeper. Ignored if the keeper is not
  // root.
  std::uint32_t uid_base = 0;
  std::vector<Rlimit> rlimits = {};
  Limits limits = {};
  std::uint32_t weakenings = 0;  // see allow()
  Level min_level = Level::weak;

  template <class Weakening>
  void allow(Weakening /*token*/) {
    weakenings |= Weakening::bit;
  }
  template <class Weakening>
  bool allows() const {
    return (weakenings & Weakening::bit) != 0;
  }

  friend bool operator==(const Plan&, const Plan&) = default;
  static constexpr auto fields() {
    return std::tuple{field("base", &Plan::base),
                      field("layers", &Plan::layers),
                      field("upper_folder", &Plan::upper_folder),
                      field("upper_bytes", &Plan::upper_bytes),
                      field("upper_inodes", &Plan::upper_inodes),
                      field("binds", &Plan::binds),
                      field("directories", &Plan::directories),
                      field("kept_folder", &Plan::kept_folder),
                      field("tmp_bytes", &Plan::tmp_bytes),
                      field("shm_bytes", &Plan::shm_bytes),
                      field("scratch_inodes", &Plan::scratch_inodes),
                      field("hostname", &Plan::hostname),
                      field("user", &Plan::user),
                      field("uid_base", &Plan::uid_base),
                      field("rlimits", &Plan::rlimits),
                      field("limits", &Plan::limits),
                      field("weakenings", &Plan::weakenings),
                      field("min_level", &Plan::min_level)};
  }
};

// Validates a plan before anything is done for it. Uses nothing but the plan.
Result<> check(const Plan& plan);

}  // namespace berth::keeper::sandbox
