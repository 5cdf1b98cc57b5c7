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

// What a sandbox is to be, as a value: made by a provider, carried by the request `confine`, judged
// by check(), and turned into kernel objects by enter(). docs/sandbox.md says what each part means.
namespace berth::keeper::sandbox {

namespace plan_limits {

inline constexpr std::size_t layers = 48;
inline constexpr std::size_t binds = 64;
inline constexpr std::size_t directories = 64;
inline constexpr std::size_t rlimits = 16;
inline constexpr std::size_t groups = 64;
inline constexpr std::size_t path_bytes = 4095;
inline constexpr std::size_t hostname_bytes = 64;
inline constexpr std::uint32_t ids = 65536;  // in the range of one sandbox

}  // namespace plan_limits

// How strong a sandbox is, weakest first, so that they compare. docs/sandbox.md#levels.
enum class Level : std::uint8_t { minimal, weak, standard, strong, count_ };
std::string_view name_of(Level level);

// What the root filesystem is built on.
enum class Base : std::uint8_t {
  host,    // the host's /usr, read-only, and a skeleton of the rest
  layers,  // only what the layers hold
  count_,
};

// A sandbox of level `minimal` has no root of its own: its files lie in this folder of its
// keeper's.
inline constexpr std::string_view box_folder = "box";

enum class Access : std::uint8_t { read_only, writable, count_ };

// What the commands may, inside.
enum class Identity : std::uint8_t {
  user,  // nothing more than their ids give: no capability
  root,  // they are 0, with capabilities over the sandbox's own ids only
};

// Who the commands are, in ids that the sandbox knows. Outside they are nobody that exists, or the
// keeper's own user.
struct User {
  std::uint32_t uid = 1000;
  std::uint32_t gid = 1000;
  // Besides gid. Where the keeper is not root there are none, and `confined` says so.
  std::vector<std::uint32_t> groups = {};

  Identity identity() const { return uid == 0 ? Identity::root : Identity::user; }
  friend bool operator==(const User&, const User&) = default;
  static constexpr auto fields() {
    return std::tuple{field("uid", &User::uid), field("gid", &User::gid),
                      field("groups", &User::groups)};
  }
};

// A directory or file of the host, seen in the sandbox.
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

// One of setrlimit(2), for everything inside.
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

// Weakenings. Each is a type, so that a search for its name finds every place that opens the door.
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
  // What is written to the root: this directory (`upper` and `work` are made in it), or memory.
  std::string upper_folder = {};
  std::uint64_t upper_bytes = std::uint64_t{256} << 20;  // in memory only
  std::uint64_t upper_inodes = 65536;
  std::vector<Bind> binds = {};
  // Made where they are missing, and given to the sandbox's user.
  std::vector<std::string> directories = {};
  // The folder of the root that outlives a remake; empty: none does. Only of a root in memory.
  std::string kept_folder = {};
  // Of these two each may use what the other leaves, of bytes and of files.
  std::uint64_t tmp_bytes = std::uint64_t{256} << 20;  // 0: /tmp is a part of the root
  std::uint64_t shm_bytes = std::uint64_t{64} << 20;
  std::uint64_t scratch_inodes = 65536;
  std::string hostname = "sandbox";
  User user = {};
  // First of the 65536 ids of the host that are the sandbox's; 0: chosen by the keeper. Without
  // meaning where the keeper is not root.
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

// What must hold of a plan before anything is done for it. Looks at nothing but the plan.
Result<> check(const Plan& plan);

}  // namespace berth::keeper::sandbox
