#include "keeper/plugin_worker/plugin_enter.hpp"

#include "keeper/plugin_worker/plugin_network.hpp"
#include "keeper/sandbox/identity.hpp"
#include "keeper/sandbox/landlock.hpp"
#include "keeper/sandbox/mounts.hpp"
#include "keeper/sandbox/namespaces.hpp"
#include "keeper/sandbox/seccomp.hpp"
#include "keeper/sandbox/skeleton.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace berth::keeper {
namespace {

using sandbox::Access;
using sandbox::Bind;
using sandbox::Feature;
using sandbox::Features;
using sandbox::Phase;
using sandbox::Plan;
using sandbox::SetupReport;

constexpr std::uint64_t processes_max = 512;
constexpr std::uint64_t open_files_max = 4096;
constexpr std::uint64_t root_bytes = std::uint64_t{8} << 20;
constexpr std::uint16_t names_port = 53;

// Files in /etc that programs in /usr read, besides those that every sandbox has.
constexpr std::array more_of_etc{"/etc/localtime",       "/etc/services",   "/etc/protocols",
                                 "/etc/ssl/openssl.cnf", "/etc/mime.types", "/etc/timezone"};

int failed(long result) {
  return result < 0 ? errno : 0;
}

bool is_in_usr(const std::string& path) {
  return path == "/usr" || path.starts_with("/usr/");
}

void add_bind(Plan& plan, const std::string& path, Access access) {
  if (access == Access::read_only && is_in_usr(path)) return;
  if (::access(path.c_str(), F_OK) != 0) return;
  plan.binds.push_back({.source = path, .target = path, .access = access});
}

Plan plan_of(const BoxSetup& setup) {
  Plan plan;
  plan.hostname = "plugin";
  plan.upper_bytes = root_bytes;
  plan.user = {.uid = setup.uid, .gid = setup.gid};
  if (!setup.box.tmp_folder.empty()) {
    plan.tmp_bytes = 0;
    plan.binds.push_back(
        {.source = setup.box.tmp_folder, .target = "/tmp", .access = Access::writable});
  }
  for (const char* path : more_of_etc) add_bind(plan, path, Access::read_only);
  for (const std::string& path : setup.box.readable) add_bind(plan, path, Access::read_only);
  for (const std::string& path : setup.box.writable) add_bind(plan, path, Access::writable);
  // A folder is mounted after its parents, so that no mount covers it.
  std::ranges::sort(plan.binds, {},
                    [](const Bind& bind) { return std::pair{bind.target.size(), bind.access}; });
  return plan;
}

// The root of the box belongs to this machine's root, or to the only mapped id.
sandbox::Owners owners_of(const BoxSetup& setup) {
  using Kind = sandbox::Owners::Kind;
  if (setup.has_user()) return {.kind = Kind::range, .user = setup.uid, .group = setup.gid};
  return {.kind = Kind::single,
          .root = setup.uid,
          .root_group = setup.gid,
          .user = setup.uid,
          .group = setup.gid};
}

int map_ids(const BoxSetup& setup) {
  if (setup.has_user()) return 0;
  return sandbox::map_own_id({.inside = setup.uid, .outside = setup.uid},
                             {.inside = setup.gid, .outside = setup.gid});
}

int append(const char* path, const std::string& text) {
  const Fd file{::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644)};
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// Programs look up their own user name and the name servers.
int write_own_files(const BoxSetup& setup) {
  const std::string uid = std::to_string(setup.uid);
  const std::string gid = std::to_string(setup.gid);
  int error_number = append("/etc/resolv.conf", "nameserver 127.0.0.1\n");
  if (error_number == 0) {
    error_number =
        append("/etc/passwd", "plugin:x:" + uid + ":" + gid + ":plugin:/tmp:/usr/sbin/nologin\n");
  }
  return error_number != 0 ? error_number : append("/etc/group", "plugin:x:" + gid + ":\n");
}

int make_root_read_only() {
  mount_attr fixed{};
  fixed.attr_set = MOUNT_ATTR_RDONLY;
  return failed(::mount_setattr(AT_FDCWD, "/", 0, &fixed, sizeof fixed));
}

int set_limits(const BoxSetup& setup) {
  int error_number = sandbox::bound(RLIMIT_CORE, 0);
  if (error_number == 0) error_number = sandbox::bound(RLIMIT_NOFILE, open_files_max);
  if (error_number == 0) error_number = sandbox::bound(RLIMIT_DATA, setup.memory_bytes_max);
  // The kernel counts processes per uid, and an ordinary user's uid is shared by all of that user's
  // programs.
  if (error_number == 0 && setup.has_user()) {
    error_number = sandbox::bound(RLIMIT_NPROC, processes_max);
  }
  return error_number;
}

int take_identity(const BoxSetup& setup) {
  int error_number = sandbox::become({.uid = setup.uid, .gid = setup.gid});
  if (error_number == 0) error_number = sandbox::drop_capabilities(sandbox::Identity::user);
  // The kernel resets both when ids change.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return error_number != 0 ? error_number : sandbox::forbid_new_privileges();
}

// For programs that use a proxy; all others reach the outside through the doors.
void name_proxy(const BoxSetup& setup) {
  if (setup.box.ports.empty()) return;
  const std::string url = "http://127.0.0.1:" + std::to_string(box_proxy_port);
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}) {
    ::setenv(name, url.c_str(), 1);
  }
  for (const char* name : {"no_proxy", "NO_PROXY"}) ::setenv(name, "localhost,127.0.0.1,::1", 1);
}

void enter_start_folder(const BoxSetup& setup) {
  if (::chdir(setup.start_folder.c_str()) != 0) (void)!::chdir("/");
}

void note_features(const BoxSetup& setup, Features& features) {
  for (const Feature always :
       {Feature::pid_namespace, Feature::mount_namespace, Feature::ipc_namespace,
        Feature::uts_namespace, Feature::network_namespace, Feature::cgroup_namespace,
        Feature::private_root, Feature::masked_proc, Feature::no_new_privileges,
        Feature::no_capabilities, Feature::seccomp}) {
    features.add(always);
  }
  if (!setup.has_user()) features.add(Feature::user_namespace);
}

int filter_calls() {
  int error_number = sandbox::install_filter(sandbox::set_id_program());
  if (error_number == 0) {
    error_number = sandbox::install_filter(
        sandbox::filter_program(sandbox::Debugging::denied, sandbox::Nesting::denied));
  }
  return error_number;
}

// Landlock does not restrict unix socket paths, and behind such a socket a service may start
// programs for the same user. So only internet sockets are allowed, and none at all if Landlock
// cannot limit ports.
int filter_sockets(const BoxSetup& setup) {
  const bool has_internet = setup.has_user() || sandbox::landlock_limits_ports();
  return sandbox::install_filter(has_internet ? sandbox::same_user_internet_program()
                                              : sandbox::same_user_program());
}

}  // namespace

std::uint64_t namespaces_of(const BoxSetup& setup) {
  constexpr std::uint64_t usual = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
  return setup.has_user() ? usual : usual | CLONE_NEWUSER;
}

#define BERTH_STEP(phase, ...)                                     \
  if (const int error_number = (__VA_ARGS__); error_number != 0) { \
    report.failed = Phase::phase;                                  \
    report.error_number = error_number;                            \
    return report;                                                 \
  }

// The order is the security argument, as in sandbox/enter.cpp: rights are used, then given up, and
// steps that need no rights come last.
SetupReport enter_box(const BoxSetup& setup) {
  SetupReport report;
  ::prctl(PR_SET_DUMPABLE, 1);  // or this process's files in /proc belong to root
  if (setup.group) BERTH_STEP(control_groups, setup.group->join(setup.born));
  ::umask(022);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  BERTH_STEP(ids, map_ids(setup));
  PluginSockets sockets;
  BERTH_STEP(network, open_box_network(setup.box.ports, sockets));

  // While the host is visible, everything that is needed from it is opened.
  BERTH_STEP(private_mounts, sandbox::own_mounts());
  BERTH_STEP(private_mounts, sandbox::make_mounts_private());
  const Plan plan = plan_of(setup);
  std::optional<sandbox::RootBuilder> root{std::in_place, plan, owners_of(setup),
                                           sandbox::Prepared{}};
  BERTH_STEP(bind_source, root->open_binds({}, report.item));
  BERTH_STEP(host_folder, root->open_host());
  BERTH_STEP(devices, root->open_devices());

  // After the pivot no path leads to the host.
  BERTH_STEP(root, root->mount_root(-1));
  BERTH_STEP(pivot, root->pivot());
  BERTH_STEP(process_folder, root->make_folder("/proc"));
  BERTH_STEP(process_table, root->mount_proc());
  BERTH_STEP(pivot, root->leave_host());
  BERTH_STEP(attach, root->attach_host());
  BERTH_STEP(name_servers, write_own_files(setup));
  BERTH_STEP(device_folder, root->make_folder("/dev"));
  BERTH_STEP(devices, root->mount_devices());
  BERTH_STEP(masks, root->mask_proc());
  BERTH_STEP(scratch_folder, root->mount_tmp());
  BERTH_STEP(bind_target, root->attach_binds(report.item));
  BERTH_STEP(root, make_root_read_only());
  BERTH_STEP(hostname, sandbox::set_hostname(plan.hostname));
  BERTH_STEP(namespaces, failed(::unshare(CLONE_NEWCGROUP)));
  root.reset();

  // Rights are dropped here; the server gets the sockets that were opened with them.
  BERTH_STEP(network, send_sockets(setup.report, sockets));
  sockets = {};
  BERTH_STEP(rlimits, set_limits(setup));
  BERTH_STEP(identity, take_identity(setup));
  enter_start_folder(setup);
  name_proxy(setup);

  // The restrictions that need no rights come last: they deny calls that the steps above need.
  const int landlocked = sandbox::restrict_with_landlock();
  if (landlocked == 0) report.features.add(Feature::landlock);
  if (landlocked != ENOSYS && landlocked != EOPNOTSUPP) BERTH_STEP(landlock, landlocked);
  BERTH_STEP(system_calls, filter_calls());
  note_features(setup, report.features);
  return report;
}

SetupReport enter_weak_box(const BoxSetup& setup) {
  SetupReport report;
  if (setup.group) BERTH_STEP(control_groups, setup.group->join(setup.born));
  ::umask(022);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  BERTH_STEP(rlimits, set_limits(setup));
  sandbox::LandlockExtent extent{
      .readable = setup.box.readable, .writable = setup.box.writable, .ports = setup.box.ports};
  extent.ports.push_back(names_port);
  if (!setup.box.tmp_folder.empty()) {
    extent.writable.push_back(setup.box.tmp_folder);
    ::setenv("TMPDIR", setup.box.tmp_folder.c_str(), 1);
  }
  if (setup.has_user()) BERTH_STEP(identity, sandbox::become({.uid = setup.uid, .gid = setup.gid}));
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the kernel resets it when ids change
  BERTH_STEP(identity, sandbox::forbid_new_privileges());
  BERTH_STEP(landlock, sandbox::leave_only(extent, report.features));
  BERTH_STEP(system_calls, filter_sockets(setup));
  BERTH_STEP(system_calls, filter_calls());
  for (const Feature feature : {Feature::no_new_privileges, Feature::landlock, Feature::seccomp}) {
    report.features.add(feature);
  }
  return report;
}

bool is_forbidden_here(const SetupReport& report) {
  switch (report.failed) {
    // These steps happen before any plugin file is read.
    case Phase::process:
    case Phase::ids:
    case Phase::network:
    case Phase::private_mounts:
    case Phase::host_folder:
    case Phase::devices:
    case Phase::root:
    case Phase::pivot:
    case Phase::process_table: return true;
    default: return false;
  }
}

BoxReport describe_box(const BoxSetup& setup, BoxLevel level, Features features) {
  BoxReport report{.level = level};
  for (unsigned i = 0; i < static_cast<unsigned>(Feature::count_); ++i) {
    const auto feature = static_cast<Feature>(i);
    if (features.has(feature)) report.features.emplace_back(name_of(feature));
  }
  const auto miss = [&](Feature feature, std::string reason, std::string remedy) {
    report.missing.push_back({.feature = std::string{name_of(feature)},
                              .reason = std::move(reason),
                              .remedy = std::move(remedy)});
  };
  if (!setup.has_user()) {
    miss(Feature::uid_range,
         "the server is not root, so outside of the box the worker has the server's user id",
         "run the server as root; each worker then has a user of its own");
  }
  if (!features.has(Feature::landlock)) {
    miss(Feature::landlock, "this kernel has no Landlock, or it is switched off",
         "a kernel of 5.19 or newer with landlock in its lsm= list");
  }
  if (level == BoxLevel::strong) return report;
  const sandbox::Prohibition why = sandbox::why_no_user_namespaces();
  const std::string remedy =
      setup.has_user() ? "give the server CAP_SYS_ADMIN, or run it outside of its container"
                       : why.remedy;
  miss(Feature::mount_namespace,
       (setup.has_user() ? std::string{"the server may not make namespaces"} : why.reason) +
           ", so the worker sees names and sizes of this machine's files",
       remedy);
  miss(Feature::network_namespace,
       sandbox::landlock_limits_ports() || setup.has_user()
           ? "the worker connects by itself, and no egress policy applies"
           : "the worker has no sockets at all, because this kernel cannot limit them",
       remedy);
  return report;
}

BoxReport describe_refusal(const BoxSetup& setup, const SetupReport& report) {
  Features there;
  if (sandbox::landlock_version() > 0) there.add(Feature::landlock);
  BoxReport refusal = describe_box(setup, BoxLevel::weak, there);
  refusal.level = BoxLevel::none;
  refusal.features.clear();
  std::array<char, 128> text{};
  refusal.failure = "a box that is " + std::string{name_of(setup.box.least)} +
                    " could not be made for the plugin: " + std::string{name_of(report.failed)} +
                    ": " + ::strerror_r(report.error_number, text.data(), text.size());
  return refusal;
}

}  // namespace berth::keeper
