#include "keeper/sandbox/enter.hpp"

#include "keeper/sandbox/identity.hpp"
#include "keeper/sandbox/init.hpp"
#include "keeper/sandbox/landlock.hpp"
#include "keeper/sandbox/orders.hpp"
#include "keeper/sandbox/seccomp.hpp"
#include "keeper/sandbox/skeleton.hpp"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace berth::keeper::sandbox {
namespace {

int errno_of_step(long result) {
  return result < 0 ? errno : 0;
}

// Remains open, because the file belongs to the host's root while this process hides its memory.
Fd prefer_as_oom_victim() {
  Fd file{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)};
  // If the keeper's score is higher already, it remains.
  if (file && ::write(file.get(), init_preference.data(), init_preference.size()) < 0) return {};
  return file;
}

int enter_network(const Setup& setup) {
  if (setup.network == Network::host) return 0;
  if (setup.network_namespace < 0) return bring_up_loopback();
  return errno_of_step(::setns(setup.network_namespace, CLONE_NEWNET));
}

Owners owners_of(const Setup& setup, const Plan& plan) {
  const User& user = plan.user;
  if (!setup.has_range()) {
    return {.kind = Owners::Kind::single,
            .root = user.uid,
            .root_group = user.gid,
            .user = user.uid,
            .group = user.gid};
  }
  return {.kind = Owners::Kind::range,
          .root = setup.first_id,
          .root_group = setup.first_id,
          .user = setup.first_id + user.uid,
          .group = setup.first_id + user.gid};
}

int map_ids(const Setup& setup, const Owners& owners) {
  if (setup.has_range()) return 0;
  return map_own_id({.inside = owners.user, .outside = setup.maker, .count = 1},
                    {.inside = owners.group, .outside = setup.maker_group, .count = 1});
}

MountMaps maps_of(const Setup& setup, const Orders& orders) {
  MountMaps maps{.layers = setup.user_namespace, .binds = {}};
  for (const Fd& map : orders.bind_maps) maps.binds.push_back(map.get());
  return maps;
}

int join_ids(const Setup& setup) {
  if (setup.user_namespace < 0) return 0;
  return errno_of_step(::setns(setup.user_namespace, CLONE_NEWUSER));
}

// The identity of the processes, in the ids that they see. Without a user namespace no process is
// 0, and so none has a capability: the ids of the range are ordinary host ids.
User user_of(const Setup& setup, const Plan& plan) {
  User user = plan.user;
  // A process that maps only its own group may not set groups; describe() reports the missing ones.
  if (!setup.has_range()) user.groups.clear();
  if (setup.has_user_namespace()) return user;
  user.uid += setup.first_id;
  user.gid += setup.first_id;
  for (std::uint32_t& group : user.groups) group += setup.first_id;
  return user;
}

int take_identity(const User& user) {
  if (const int error_number = become(user); error_number != 0) return error_number;
  if (const int error_number = drop_capabilities(user.identity()); error_number != 0) {
    return error_number;
  }
  // The kernel resets both when ids change, so they are set afterwards.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return forbid_new_privileges();
}

// Closes everything of the keeper's except the channel to it and the descriptors to be passed on.
int keep_only(int control, Fd upper, Fd tray, Fd preference) {
  // Plain numbers, since all of these are closed together at the end.
  constexpr int above = 16;
  const int high_control = ::fcntl(control, F_DUPFD_CLOEXEC, above);
  const int high_upper = ::fcntl(upper.release(), F_DUPFD_CLOEXEC, above);
  const int high_tray = tray ? ::fcntl(tray.release(), F_DUPFD_CLOEXEC, above) : -1;
  const int high_preference = ::fcntl(preference.release(), F_DUPFD_CLOEXEC, above);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return errno;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null, fd) < 0) return errno;
  }
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int high_root = ::fcntl(root, F_DUPFD_CLOEXEC, above);
  if (::dup3(high_control, control_descriptor, O_CLOEXEC) < 0 ||
      ::dup3(high_root, root_descriptor, O_CLOEXEC) < 0 ||
      ::dup3(high_upper, upper_descriptor, O_CLOEXEC) < 0) {
    return errno;
  }
  ::close(tray_descriptor);
  if (high_tray >= 0 && ::dup3(high_tray, tray_descriptor, O_CLOEXEC) < 0) return errno;
  ::close(preference_descriptor);
  if (high_preference >= 0 && ::dup3(high_preference, preference_descriptor, O_CLOEXEC) < 0) {
    return errno;
  }
  return errno_of_step(::close_range(preference_descriptor + 1, ~0U, 0));
}

// A file that is made in a host folder belongs to the folder's owner there, often root, and no
// mount option of the sandbox stops the host from honouring its mode. Root inside installs packages
// with such files, and is trusted with the folders that it is given. Without a user namespace every
// owner inside is a host id.
bool must_not_set_ids(const Setup& setup, const Plan& plan) {
  if (!setup.has_user_namespace()) return true;
  const auto is_writable = [](const Bind& bind) { return bind.access == Access::writable; };
  return plan.user.identity() == Identity::user && std::ranges::any_of(plan.binds, is_writable);
}

std::span<const sock_filter> filter_of(const Plan& plan) {
  return filter_program(plan.allows<AllowPtrace>() ? Debugging::allowed : Debugging::denied,
                        plan.allows<AllowNestedNamespaces>() ? Nesting::allowed : Nesting::denied);
}

// Without a memory cgroup for the whole sandbox, each process's memory is limited.
int bound_memory(const Setup& setup, const Plan& plan, Features& features) {
  if (plan.limits.memory_bytes == 0 || setup.cgroup.rules(Controller::memory)) return 0;
  features.add(Feature::process_memory);
  return bound(RLIMIT_DATA, plan.limits.memory_bytes);
}

void note_features(const RootBuilder& root, const Plan& plan, const Setup& setup,
                   Features& features) {
  for (const Feature always :
       {Feature::pid_namespace, Feature::mount_namespace, Feature::ipc_namespace,
        Feature::uts_namespace, Feature::cgroup_namespace, Feature::private_root,
        Feature::masked_proc, Feature::no_new_privileges}) {
    features.add(always);
  }
  if (setup.has_user_namespace()) features.add(Feature::user_namespace);
  if (!plan.allows<AllowHostNetwork>()) features.add(Feature::network_namespace);
  if (setup.has_range()) features.add(Feature::uid_range);
  if (root.is_idmapped()) features.add(Feature::idmapped_root);
  if (root.are_binds_idmapped()) features.add(Feature::idmapped_binds);
  if (user_of(setup, plan).identity() == Identity::user) features.add(Feature::no_capabilities);
}

}  // namespace

#define BERTH_STEP(phase, ...)                                     \
  if (const int error_number = (__VA_ARGS__); error_number != 0) { \
    report.failed = Phase::phase;                                  \
    report.error_number = error_number;                            \
    return report;                                                 \
  }

// The order is the security argument, so it is all in one place: see docs/sandbox.md#order.
SetupReport enter(const Setup& setup) {
  SetupReport report;

  // The /proc files of a process that hides its memory are root's; this process has no secrets yet.
  ::prctl(PR_SET_DUMPABLE, 1);
  // Independent of the plan. Control groups come first, so that even the setup is limited.
  BERTH_STEP(control_groups, setup.cgroup.join(setup.born));
  Fd preference = prefer_as_oom_victim();
  ::umask(022);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  BERTH_STEP(network, enter_network(setup));
  Prepared prepared;
  if (setup.user_namespace >= 0) BERTH_STEP(root, prepare(setup.first_id, prepared));
  Orders orders;
  BERTH_STEP(orders, receive_orders(setup.control, orders));
  const Plan& plan = orders.plan;
  prepared.kept = std::move(orders.tray);
  const Owners owners = owners_of(setup, plan);
  const MountMaps maps = maps_of(setup, orders);
  std::optional<RootBuilder> root{std::in_place, plan, owners, std::move(prepared)};

  // While the host and its current mounts are visible, everything that is needed from them is
  // opened.
  BERTH_STEP(ids, map_ids(setup, owners));
  BERTH_STEP(private_mounts, own_mounts());
  BERTH_STEP(private_mounts, make_mounts_private());
  BERTH_STEP(layer, root->open_layers(maps.layers, report.item));
  BERTH_STEP(bind_source, root->open_binds(maps.binds, report.item));
  BERTH_STEP(host_folder, root->open_host());
  BERTH_STEP(devices, root->open_devices());

  // After the pivot no path leads to the host.
  BERTH_STEP(root, root->mount_root(maps.layers));
  BERTH_STEP(pivot, root->pivot());
  BERTH_STEP(process_folder, root->make_folder("/proc"));
  BERTH_STEP(process_table, root->mount_proc());
  BERTH_STEP(pivot, root->leave_host());
  BERTH_STEP(attach, root->attach_host());
  BERTH_STEP(name_servers, root->attach_name_servers());
  BERTH_STEP(device_folder, root->make_folder("/dev"));
  BERTH_STEP(devices, root->mount_devices());
  BERTH_STEP(masks, root->mask_proc());
  BERTH_STEP(scratch_folder, root->mount_tmp());
  BERTH_STEP(bind_target, root->attach_binds(report.item));
  BERTH_STEP(directory, root->make_directories(report.item));
  const bool has_skeleton = plan.base == Base::host && plan.layers.empty();
  if (has_skeleton && !setup.has_user_namespace()) BERTH_STEP(root, name_ids(setup.first_id));

  // The last uses of rights over the other namespaces, which are given up when their owner changes.
  BERTH_STEP(hostname, set_hostname(plan.hostname));
  BERTH_STEP(namespaces, errno_of_step(::unshare(CLONE_NEWCGROUP)));
  // Root may still raise limits here, but not in the user namespace.
  BERTH_STEP(rlimits, set_rlimits(plan, report));
  BERTH_STEP(rlimits, bound_memory(setup, plan, report.features));
  BERTH_STEP(enter_ids, join_ids(setup));
  note_features(*root, plan, setup, report.features);
  Fd upper = root->take_upper();
  Fd tray = root->take_tray();
  root.reset();
  orders.bind_maps.clear();  // before their numbers are reused
  BERTH_STEP(init,
             keep_only(setup.control, std::move(upper), std::move(tray), std::move(preference)));
  BERTH_STEP(identity, take_identity(user_of(setup, plan)));

  // The restrictions that need no rights come last: they deny calls that the steps above need.
  const int landlocked = restrict_with_landlock();
  if (landlocked == 0) report.features.add(Feature::landlock);
  if (landlocked != ENOSYS && landlocked != EOPNOTSUPP) BERTH_STEP(landlock, landlocked);
  if (must_not_set_ids(setup, plan)) BERTH_STEP(system_calls, install_filter(set_id_program()));
  BERTH_STEP(system_calls, install_filter(filter_of(plan)));
  report.features.add(Feature::seccomp);
  return report;
}

}  // namespace berth::keeper::sandbox
