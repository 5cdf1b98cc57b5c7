#include "security/expectations.hpp"

#include <ostream>
#include <string>

namespace berth::security_test {

namespace {

using enum Shown;

constexpr Expectation table[] = {
    // Files.
    {"host_file_directly", "denied ENOENT", "the host's files are not in the sandbox's root"},
    {"host_file_via_proc_1_root", "denied EACCES",
     "pid 1 has the sandbox's root and lets nobody follow it", apart},
    {"host_file_via_proc_pid_root", "denied EACCES",
     "wardens are not dumpable, and have the sandbox's root"},
    {"host_file_via_proc_pid_cwd", "denied EACCES",
     "wardens are not dumpable, and stand in the sandbox"},
    {"chroot_twice", "denied EPERM", "refused by the filter"},
    {"open_by_handle_at", "denied EPERM",
     "refused by the filter, and it needs a capability over the host"},
    {"write_usr", "denied EROFS", "the host's /usr is mounted read-only"},
    {"write_bound_program", "denied EROFS", "what is bound read-only keeps its mode too"},
    {"write_keeper_via_proc_1_exe", "denied EACCES",
     "pid 1 is not dumpable, so its links lead nowhere", nowhere,
     "a running program is busy for everyone"},
    // Processes.
    {"ptrace_host_process", "denied EPERM",
     "refused by the filter, and the host's processes have no pid inside"},
    {"process_vm_readv_host", "denied EPERM", "processes of the host have no pid inside"},
    {"signal_host_process", "denied ESRCH", "processes of the host have no pid inside"},
    {"signal_host_group", "denied ESRCH", "process groups of the host have no number inside"},
    {"pidfd_open_host_process", "denied ESRCH", "processes of the host have no pid inside"},
    {"see_host_processes", "denied ESRCH", "/proc shows the sandbox's pid namespace"},
    {"gain_by_setuid_program", "denied EPERM or denied ENOENT", "no_new_privs and nosuid"},
    {"gain_by_own_setuid_program", "denied EPERM", "no_new_privs and nosuid"},
    {"realtime_priority", "denied EPERM", "it needs a capability over the host"},
    {"daemon_survives", "limited left a daemon", "it is killed with the command that left it"},
    {"lower_oom_score", "denied EACCES", "it needs a capability over the host", on_the_host,
     "denied EACCES"},
    {"dump_core", "denied EPERM", "the hard limit of cores is 0"},
    // Pid 1.
    {"ptrace_init", "denied EPERM", "pid 1 is not dumpable", apart},
    {"process_vm_readv_init", "denied EPERM", "pid 1 is not dumpable", apart},
    {"read_init_memory", "denied EACCES", "pid 1 is not dumpable", apart},
    {"read_init_environment", "denied EACCES", "pid 1 is not dumpable", apart},
    {"list_init_descriptors", "denied EACCES", "pid 1 is not dumpable", apart},
    {"take_init_descriptor", "denied EPERM", "pid 1 is not dumpable", apart},
    {"stop_init", "limited pid 1 takes no notice", "the kernel keeps the signal from pid 1",
     nowhere, "no pid 1 can be stopped from inside"},
    {"kill_init", "limited pid 1 takes no notice", "the kernel keeps the signal from pid 1",
     nowhere, "no pid 1 can be killed from inside"},
    {"terminate_init", "limited pid 1 takes no notice", "pid 1 has no handler for it", nowhere,
     "no pid 1 without a handler is ended from inside"},
    {"slow_init", "denied EPERM", "the filter refuses to have pid 1 scheduled otherwise", apart},
    {"connect_control_socket", "denied ENOENT", "the control socket has no name"},
    // Mounts.
    {"mount_tmpfs", "denied EPERM", "the mount namespace is not the workload's"},
    {"mount_proc", "denied EPERM", "the mount namespace is not the workload's"},
    {"mount_sysfs", "denied EPERM", "the mount namespace is not the workload's"},
    {"bind_mount_of_root", "denied EPERM", "the mount namespace is not the workload's"},
    {"remount_usr_writable", "denied EPERM", "the mount namespace is not the workload's", apart},
    {"mount_setattr_usr_writable", "denied EPERM", "the mount namespace is not the workload's",
     apart},
    {"unmount_proc_masks", "denied EPERM", "the mount namespace is not the workload's", apart},
    {"open_tree_clone", "denied EPERM", "the mount namespace is not the workload's"},
    {"fsopen_tmpfs", "denied EPERM", "the mount namespace is not the workload's"},
    {"pivot_root", "denied EPERM", "the mount namespace is not the workload's", apart},
    // Namespaces.
    {"unshare_userns", "denied EPERM", "the filter refuses new namespaces"},
    {"clone3_userns", "denied ENOSYS", "the filter cannot read the flags of clone3"},
    {"clone_userns", "denied EPERM", "the filter refuses new namespaces"},
    {"userns_and_mount", "denied EPERM", "the filter refuses new namespaces"},
    {"userns_and_network", "denied EPERM", "the filter refuses new namespaces"},
    {"unshare_other_namespaces", "denied EPERM", "the filter refuses new namespaces"},
    {"setns_host_mounts", "denied EACCES", "pid 1 is not dumpable, so its links lead nowhere"},
    // System calls.
    {"add_key", "denied EPERM", "keyrings are the kernel's, not the sandbox's"},
    {"user_keyring", "denied EPERM", "keyrings are the kernel's, not the sandbox's"},
    {"bpf_map_create", "denied EPERM", "refused by the filter"},
    {"perf_event_open", "denied EPERM", "refused by the filter"},
    {"io_uring_setup", "denied EPERM", "its requests pass by the filter"},
    {"userfaultfd", "denied EPERM", "it stops the kernel at a place of the workload's choice"},
    {"init_module", "denied EPERM", "refused by the filter", on_the_host, "denied ENOSYS"},
    {"finit_module", "denied EPERM", "refused by the filter", on_the_host, "denied ENOSYS"},
    {"delete_module", "denied EPERM", "refused by the filter", on_the_host, "denied ENOSYS"},
    {"kexec_load", "denied EPERM", "refused by the filter", on_the_host, "denied ENOSYS"},
    {"reboot", "denied EPERM", "refused by the filter"},
    {"swapon", "denied EPERM", "refused by the filter"},
    {"acct", "denied EPERM", "refused by the filter"},
    {"quotactl", "denied EPERM", "refused by the filter"},
    {"io_ports", "denied EPERM", "refused by the filter", on_the_host, "denied ENOSYS"},
    {"fanotify_init", "denied EPERM", "refused by the filter"},
    {"kcmp", "denied EPERM", "refused by the filter"},
    {"kernel_log", "denied EPERM", "the log is the host's"},
    {"set_clock", "denied EPERM", "the clock is the host's"},
    {"sethostname", "denied EPERM", "the name was set before the workload came"},
    {"int80_system_call", "killed SIGSYS", "the filter knows one table of system calls"},
    {"x32_system_call", "denied ENOSYS", "the filter knows one table of system calls", on_the_host,
     "denied ENOSYS"},
    {"personality_no_randomize", "denied EPERM", "refused by the filter"},
    {"open_tree_attr", "denied EPERM", "refused by the filter", on_the_host, "denied ENOSYS"},
    {"unknown_system_call", "denied ENOSYS", "the filter knows the calls up to the last reviewed",
     nowhere, "no kernel has a call of that number"},
    {"list_mounts", "denied ENOSYS", "it tells of the host's paths", on_the_host, "denied ENOSYS"},
    {"list_security_modules", "denied ENOSYS", "they are the host's", on_the_host, "denied ENOSYS"},
    {"modify_ldt", "denied ENOSYS", "nothing of 64 bits needs it", on_the_host, "denied ENOSYS"},
    {"memfd_secret", "denied ENOSYS", "the kernel can neither swap nor move such memory",
     on_the_host, "denied ENOSYS"},
    // Devices, /proc and /sys.
    {"mknod_host_disk", "denied EPERM", "device nodes need a capability over the host", on_the_host,
     "denied EPERM"},
    {"mknod_kernel_log", "denied EPERM", "device nodes need a capability over the host"},
    {"open_device_nodes", "denied ENOENT", "/dev holds a handful of harmless nodes"},
    {"find_device_nodes", "denied ENOENT", "/dev holds a handful of harmless nodes"},
    {"open_host_terminal", "denied ENOENT", "the sandbox has terminals of its own"},
    {"tiocsti_controlling_terminal", "denied EPERM", "refused by the filter", with_terminal},
    {"tiocsti_own_terminal", "denied EPERM", "refused by the filter"},
    {"tioclinux", "denied EPERM", "refused by the filter"},
    {"tiocsetd", "denied EPERM", "a line discipline may be a module of the host's kernel"},
    {"write_core_pattern", "denied EACCES",
     "the host's files belong to ids that nobody inside has"},
    {"write_proc_sys", "denied EACCES", "/proc/sys is read-only"},
    {"write_sys", "denied ENOENT", "there is no writable /sys"},
    {"leave_cgroup", "denied ENOENT", "the hierarchy of cgroups is not there"},
    {"raise_cgroup_limits", "denied ENOENT", "the hierarchy of cgroups is not there"},
    {"release_agent", "denied EPERM", "no hierarchy can be mounted"},
    // Network.
    {"raw_socket", "denied EPERM", "it needs a capability over the network"},
    {"packet_socket", "denied EAFNOSUPPORT", "refused by the filter"},
    {"vsock_socket", "denied EAFNOSUPPORT",
     "no namespace holds it, so the filter refuses the family"},
    {"alg_socket", "denied EAFNOSUPPORT", "the filter refuses the family", on_the_host,
     "denied EAFNOSUPPORT"},
    {"odd_socket_families", "denied EAFNOSUPPORT", "the filter refuses the families", on_the_host,
     "denied EAFNOSUPPORT"},
    {"odd_socket_protocols", "denied EPROTONOSUPPORT",
     "a protocol may be a module of the host's kernel"},
    {"set_loopback_mtu", "denied EPERM", "the network namespace is not the workload's"},
    {"netlink_set_link", "denied EPERM", "the network namespace is not the workload's"},
    {"hear_device_events", "denied EPROTONOSUPPORT", "they tell of the host's devices"},
    {"connect_host_abstract_socket", "denied ECONNREFUSED",
     "abstract sockets are the network namespace's"},
    {"connect_host_socket_path", "denied ENOENT",
     "the host's sockets are not in the sandbox's root"},
    {"connect_host_loopback", "denied ECONNREFUSED", "the loopback is the sandbox's own"},
    {"connect_metadata_service", "denied ENETUNREACH",
     "there is no way out of the network namespace"},
    {"send_to_outside", "denied ENETUNREACH", "there is no way out of the network namespace"},
    {"bind_port_80", "denied EACCES or limited took port 80 of its own network",
     "the port is the sandbox's own"},
    // Information.
    {"read_proc_of_host", "denied ENOENT", "what tells of the host in /proc is masked"},
    {"read_sys_of_host", "denied ENOENT", "there is no /sys"},
    {"inherited_descriptors", "denied EBADF", "everything is closed before the first program"},
    {"secret_in_own_environment", "denied ENOENT", "a command gets the environment of its request"},
    {"secret_in_other_environments", "denied EACCES",
     "nothing inside has the keeper's environment"},
    {"secret_in_other_memory", "denied EACCES", "what the keeper forked is not dumpable"},
    // Resources.
    {"exhaust_descriptors", "limited", "RLIMIT_NOFILE"},
    {"fork_bomb", "limited", "pids.max, and RLIMIT_NPROC where there is no control group"},
    {"zombie_flood", "limited", "pids.max, and RLIMIT_NPROC where there is no control group"},
    {"memory_bomb", "killed SIGKILL", "memory.max", on_the_host, "", "memory"},
    {"memory_file_bomb", "killed SIGKILL", "memory.max", on_the_host, "", "memory"},
    {"fill_socket_buffers", "limited or killed SIGKILL",
     "memory.max, and memory.kmem.tcp.limit_in_bytes of v1", on_the_host, "", "memory"},
    {"exhaust_terminals", "limited", "the sandbox's own pts holds 64"},
    {"fill_tmp", "limited", "/tmp has a size"},
    {"fill_root", "limited", "what is written to the root has a size"},
    {"fill_dev_shm", "limited", "/dev/shm has a size"},
    {"exhaust_inodes", "limited", "/tmp has a number of files"},
};

}  // namespace

std::span<const Expectation> expectations() {
  return table;
}

void PrintTo(const Expectation& expectation, std::ostream* out) {
  *out << expectation.attempt;
}

std::span<const MinimalDifference> minimal_differences() {
  static constexpr MinimalDifference differences[] = {
      {"host_file_directly", "denied EACCES"},
      {"write_usr", "denied EACCES"},
      {"write_bound_program", "denied EPERM"},
      {"signal_host_process", "denied EPERM"},
      {"pidfd_open_host_process", "OPEN", "pid-namespace"},
      {"see_host_processes", "OPEN", "pid-namespace"},
      {"gain_by_own_setuid_program", "denied EACCES"},
      {"stop_init", "denied EPERM"},
      {"kill_init", "denied EPERM"},
      {"terminate_init", "denied EPERM"},
      {"remount_usr_writable", "OPEN found /usr writable", "mount-namespace"},
      {"unmount_proc_masks", "denied ENOENT"},
      {"find_device_nodes", "denied EACCES"},
      {"open_host_terminal", "denied EACCES"},
      {"tiocsti_own_terminal", "denied EACCES"},
      {"tiocsetd", "denied EACCES"},
      {"write_sys", "denied EACCES"},
      {"leave_cgroup", "denied EACCES"},
      {"raise_cgroup_limits", "denied EACCES"},
      {"raw_socket", "denied EACCES"},
      {"set_loopback_mtu", "denied EACCES"},
      {"netlink_set_link", "OPEN shares the host's network", "network-namespace"},
      {"connect_host_abstract_socket", "denied EACCES"},
      {"connect_host_socket_path", "denied EACCES"},
      {"connect_host_loopback", "denied EACCES"},
      {"connect_metadata_service", "OPEN shares the host's network", "network-namespace"},
      {"send_to_outside", "OPEN shares the host's network", "network-namespace"},
      {"bind_port_80", "denied EBADF"},
      {"read_proc_of_host", "OPEN", "pid-namespace"},
      {"read_sys_of_host", "OPEN found", "mount-namespace"},
      {"fill_socket_buffers", "denied EACCES"},
      {"exhaust_terminals", "denied EACCES"},
      {"fill_tmp", "denied EACCES"},
      {"fill_root", "denied EACCES"},
      {"fill_dev_shm", "denied EACCES"},
  };
  return differences;
}

bool agrees(std::string_view verdict, std::string_view expected) {
  constexpr std::string_view between = " or ";
  for (;;) {
    const std::size_t end = expected.find(between);
    const std::string_view one = expected.substr(0, end);
    if (verdict == one || verdict.starts_with(std::string{one} + " ")) return true;
    if (end == std::string_view::npos) return false;
    expected.remove_prefix(end + between.size());
  }
}

}  // namespace berth::security_test
