#include "base/files.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/sandbox/cell.hpp"
#include "keeper/sandbox/identity.hpp"
#include "keeper/sandbox/init.hpp"
#include "keeper/sandbox/isolation.hpp"
#include "keeper/sandbox/landlock.hpp"
#include "keeper/sandbox/seccomp.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>

// The sandbox of level `minimal`: has its own order, as enter() has. docs/sandbox.md#minimal.
namespace berth::keeper::sandbox {
namespace {

constexpr int minimal_setup_limit_ms = 30'000;
constexpr int control_fd = 3;
constexpr std::string_view minimal_init_name = "berth-init";
constexpr const char* minimal_scratch = "/tmp";

struct MinimalSetup {
  const Plan& plan;
  const Cgroup& cgroup;
  Cgroup::Born born;
  int folder;   // the box
  int control;  // to the keeper
};

std::unexpected<Error> impossible(const std::string& what) {
  const Prohibition why = why_no_user_namespaces();
  return fail(Errc::sandbox_unavailable,
              "the sandbox could not be made: " + why.reason + ", and without namespaces " + what,
              why.remedy + "; or run the server as root");
}

Result<> check_minimal(const Plan& plan) {
  if (landlock_version() == 0) {
    return impossible("it needs Landlock (kernel 5.19 or newer), which is missing too");
  }
  if (plan.base != Base::host || !plan.layers.empty() || !plan.upper_folder.empty()) {
    return impossible("only the host's own programs can be used, not an image or a template");
  }
  if (!plan.binds.empty()) return impossible("no folder of the host can be shown inside");
  if (plan.user.identity() == Identity::root) return impossible("no process inside can be root");
  if (plan.weakenings != 0) return impossible("nothing of what holds it can be taken away");
  return {};
}

// Like mkdir -p, below the folder.
Result<> make_below(const std::string& folder, const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string made = folder + path.substr(0, end);
    if (::mkdir(made.c_str(), 0755) != 0 && errno != EEXIST) {
      return io_failure("make", made, errno);
    }
    if (end == std::string::npos) return {};
  }
}

Result<Fd> make_box(const Plan& plan) {
  const std::string box{box_folder};
  if (::mkdir(box.c_str(), 0700) != 0) return io_failure("make", box, errno);
  BERTH_DO(make_below(box, minimal_scratch));
  BERTH_DO(make_below(box, "/home/sandbox"));
  for (const std::string& directory : plan.directories) BERTH_DO(make_below(box, directory));
  Fd opened{::open(box.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!opened) return io_failure("open", box, errno);
  return opened;
}

// Limits that control groups do not enforce, for each process.
int bound_each_process(const MinimalSetup& setup, Features& features) {
  const int error_number = bound(RLIMIT_FSIZE, setup.plan.upper_bytes);
  const std::uint64_t memory = setup.plan.limits.memory_bytes;
  if (error_number != 0 || memory == 0 || setup.cgroup.unenforced().empty()) return error_number;
  features.add(Feature::process_memory);
  return bound(RLIMIT_DATA, memory);
}

// Nothing of the keeper's is left open but the way to talk to it.
int keep_only_control(int control) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return errno;
  const int high_control = ::fcntl(control, F_DUPFD_CLOEXEC, control_fd + 1);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null, fd) < 0) return errno;
  }
  if (::dup3(high_control, control_fd, O_CLOEXEC) < 0) return errno;
  return ::close_range(control_fd + 1, ~0U, 0) == 0 ? 0 : errno;
}

#define BERTH_STEP(phase, ...)                                     \
  if (const int error_number = (__VA_ARGS__); error_number != 0) { \
    report.failed = Phase::phase;                                  \
    report.error_number = error_number;                            \
    return report;                                                 \
  }

// As in enter(), the order is the security argument: steps that need rights first, filters last.
SetupReport enter_minimal(const MinimalSetup& setup) {
  SetupReport report;
  BERTH_STEP(control_groups, setup.cgroup.join(setup.born));
  ::umask(022);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  ::setsid();
  // The orphans of a killed warden can still be found below this process.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_DUMPABLE, 0);
  BERTH_STEP(root, ::fchdir(setup.folder) == 0 ? 0 : errno);
  BERTH_STEP(rlimits, set_rlimits(setup.plan, report));
  BERTH_STEP(rlimits, bound_each_process(setup, report.features));
  BERTH_STEP(identity, forbid_new_privileges());
  BERTH_STEP(landlock, leave_only_folder(setup.folder, report.features));
  BERTH_STEP(init, keep_only_control(setup.control));
  BERTH_STEP(system_calls, install_filter(set_id_program()));
  BERTH_STEP(system_calls, install_filter(same_user_program()));
  BERTH_STEP(system_calls, install_filter(filter_program(Debugging::denied, Nesting::denied)));
  for (const Feature feature : {Feature::no_new_privileges, Feature::no_capabilities,
                                Feature::landlock, Feature::seccomp, Feature::no_sockets}) {
    report.features.add(feature);
  }
  return report;
}

[[noreturn]] void become_minimal_init(const MinimalSetup& setup, const Surroundings& surroundings,
                                      pid_t keeper) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(1);
  const SetupReport report = enter_minimal(setup);
  const bool good = report.failed == Phase::none;
  // If this fails, the keeper learns of this process's end from the kernel.
  const ssize_t sent =
      ::send(good ? control_fd : setup.control, &report, sizeof report, MSG_NOSIGNAL);
  if (!good || sent < 0) ::_exit(1);
  std::ranges::fill(surroundings.command_line, '\0');
  minimal_init_name.copy(surroundings.command_line.data(), surroundings.command_line.size());
  run_init(control_fd, -1, report.files_of_commands(surroundings.open_files));
}

}  // namespace

Result<std::unique_ptr<Cell>> Cell::make_minimal(const Plan& plan,
                                                 const Surroundings& surroundings) {
  BERTH_DO(check(plan));
  BERTH_DO(check_minimal(plan));
  const CgroupLayout layout =
      surroundings.layout != nullptr ? *surroundings.layout : detect_layout();
  BERTH_TRY(Cgroup cgroup, Cgroup::make(layout, surroundings.id, plan.limits));
  std::unique_ptr<Cell> cell{new Cell{kind_of(plan), std::move(cgroup)}};
  cell->has_namespaces_ = false;
  BERTH_DO(cell->start_minimal(plan, surroundings));
  return cell;
}

Result<> Cell::start_minimal(const Plan& plan, const Surroundings& surroundings) {
  BERTH_TRY(root_, make_box(plan));
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return io_failure("socketpair", "a sandbox", errno);
  }
  control_ = Fd{pair[0]};
  const Fd theirs{pair[1]};
  counts_oom_ = plan.limits.memory_bytes != 0;
  const pid_t keeper = ::getpid();
  NewProcess child = fork_into(0, cgroup_.directory());
  if (child.pid == 0) {
    control_ = Fd{};  // so that the keeper's end is noticed
    become_minimal_init(
        {.plan = plan,
         .cgroup = cgroup_,
         .born = cgroup_.directory() >= 0 ? Cgroup::Born::inside : Cgroup::Born::outside,
         .folder = root_.get(),
         .control = theirs.get()},
        surroundings, keeper);
  }
  if (child.pid < 0) {
    return std::unexpected(explain(plan, {.failed = Phase::init, .error_number = -child.pid}));
  }
  init_ = std::move(child.handle);
  confined_.init_pid = child.pid;
  SetupReport report{.failed = Phase::init, .error_number = ETIMEDOUT};
  pollfd answer{control_.get(), POLLIN, 0};
  const bool answered = ::poll(&answer, 1, minimal_setup_limit_ms) > 0 &&
                        ::recv(control_.get(), &report, sizeof report, MSG_DONTWAIT) ==
                            static_cast<ssize_t>(sizeof report);
  if (!answered || report.failed != Phase::none) return std::unexpected(explain(plan, report));
  confined_ = describe_minimal(plan, report.features, cgroup_.unenforced());
  confined_.init_pid = child.pid;
  return demand(plan, confined_);
}

}  // namespace berth::keeper::sandbox
