#pragma once

#include "base/result.hpp"
#include "keeper/sandbox/plan.hpp"

#include <sys/resource.h>

#include <cstdint>
#include <string_view>

// What the process that becomes pid 1 reports to the keeper about its setup.
namespace berth::keeper::sandbox {

// The steps of enter(), in order.
enum class Phase : std::uint8_t {
  none,
  process,
  control_groups,
  network,
  orders,
  ids,
  private_mounts,
  layer,
  bind_source,
  host_folder,
  devices,
  process_folder,
  process_table,
  root,
  pivot,
  attach,
  name_servers,
  device_folder,
  masks,
  scratch_folder,
  bind_target,
  directory,
  hostname,
  namespaces,
  enter_ids,
  rlimits,
  identity,
  landlock,
  system_calls,
  init,
  count_,
};
std::string_view name_of(Phase phase);

// What makes a sandbox strong and may be missing. One bit each.
enum class Feature : std::uint8_t {
  user_namespace,
  uid_range,
  pid_namespace,
  mount_namespace,
  ipc_namespace,
  uts_namespace,
  network_namespace,
  cgroup_namespace,
  idmapped_root,
  idmapped_binds,
  private_root,
  masked_proc,
  no_new_privileges,
  no_capabilities,
  landlock,
  seccomp,
  no_sockets,
  signal_scope,
  cgroup_limits,
  process_memory,
  count_,
};
std::string_view name_of(Feature feature);

class Features {
 public:
  void add(Feature feature) { bits_ |= bit(feature); }
  bool has(Feature feature) const { return (bits_ & bit(feature)) != 0; }

 private:
  static std::uint32_t bit(Feature feature) { return 1U << static_cast<unsigned>(feature); }
  std::uint32_t bits_ = 0;
};

// One packet, for success or failure. On success the descriptors of the root and of its writable
// layer come with it.
struct SetupReport {
  Phase failed = Phase::none;
  std::int32_t error_number = 0;
  std::uint32_t item = 0;  // which layer, bind, directory or rlimit
  Features features = {};
  rlimit open_files = {};  // for commands, if the plan sets it

  rlimit files_of_commands(const rlimit& usual) const {
    return open_files.rlim_max != 0 ? open_files : usual;
  }
};

// The failure as an error: the phase, the errno text, and the remedy.
Error explain(const Plan& plan, const SetupReport& report);

// From the keeper to pid 1, one packet each, some with a descriptor.
struct InitRequest {
  enum class Kind : std::uint8_t {
    warden,    // with the warden's end of its channel
    listener,  // answered with InitReply and the socket
    dial_v4,   // the same with a connecting socket
    dial_v6,
    empty,  // answered with InitReply when no other process is left inside
  };
  Kind kind = Kind::warden;
  std::uint16_t port = 0;
};
struct InitReply {
  std::int32_t error_number = 0;
  InitRequest::Kind kind = InitRequest::Kind::listener;  // of the request, as is the port
  std::uint16_t port = 0;
};

}  // namespace berth::keeper::sandbox
