#include "keeper/sandbox/setup.hpp"

#include "base/text.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace berth::keeper::sandbox {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Phase::count_)> phase_names{
    "none",
    "process",
    "control groups",
    "network",
    "orders",
    "ids",
    "private mounts",
    "layer",
    "bind",
    "host folder",
    "devices",
    "/proc of the image",
    "process table",
    "root",
    "pivot",
    "attach",
    "/etc/resolv.conf of the image",
    "/dev of the image",
    "masks",
    "/tmp of the image",
    "bind target",
    "directory",
    "host name",
    "namespaces",
    "enter ids",
    "resource limits",
    "identity",
    "landlock",
    "system calls",
    "init"};

constexpr std::array<std::string_view, static_cast<std::size_t>(Feature::count_)> feature_names{
    "user-namespace",    "uid-range",       "pid-namespace",     "mount-namespace",
    "ipc-namespace",     "uts-namespace",   "network-namespace", "cgroup-namespace",
    "idmapped-root",     "idmapped-binds",  "private-root",      "masked-proc",
    "no-new-privileges", "no-capabilities", "landlock",          "seccomp",
    "no-sockets",        "signal-scope",    "cgroup-limits",     "process-memory"};

std::string reason(int error_number) {
  std::array<char, 128> text{};
  return ::strerror_r(error_number, text.data(), text.size());
}

template <class List>
const auto* at(const List& list, std::uint32_t item) {
  return item < list.size() ? &list[item] : nullptr;
}

// setrlimit(2) resources, with their usual names.
struct Resource {
  int number;
  std::string_view means;
  std::string_view service_key;
};
constexpr Resource resources[] = {
    {RLIMIT_NOFILE, "open files of one process", "LimitNOFILE"},
    {RLIMIT_NPROC, "processes", "LimitNPROC"},
    {RLIMIT_FSIZE, "bytes of one file", "LimitFSIZE"},
    {RLIMIT_DATA, "bytes of data of one process", "LimitDATA"},
    {RLIMIT_AS, "bytes of addresses of one process", "LimitAS"},
    {RLIMIT_STACK, "bytes of stack", "LimitSTACK"},
    {RLIMIT_MEMLOCK, "bytes of locked memory", "LimitMEMLOCK"},
};

const Resource* resource_of(const Rlimit& limit) {
  const auto* const found = std::ranges::find(resources, limit.resource, &Resource::number);
  return found != std::end(resources) ? found : nullptr;
}

// Pid 1 started with the keeper's limits, so the keeper reads its own here.
std::string hard_limit_of(const Rlimit& limit) {
  rlimit here{};
  if (::syscall(SYS_prlimit64, 0, limit.resource, nullptr, &here) != 0) return "unknown";
  return here.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(here.rlim_max);
}

std::string object_of(const Rlimit& limit) {
  const Resource* known = resource_of(limit);
  const std::string means =
      known != nullptr ? std::string{known->means} : "rlimit " + std::to_string(limit.resource);
  return ", " + means + ": " + std::to_string(limit.hard) + " are wanted, and the hard limit is " +
         hard_limit_of(limit);
}

std::string object_of(const Plan& plan, const SetupReport& report) {
  switch (report.failed) {
    case Phase::layer:
      if (const auto* layer = at(plan.layers, report.item)) return " " + in_quotes(*layer);
      return " " + in_quotes(plan.upper_folder);
    case Phase::bind_source:
      if (const auto* bind = at(plan.binds, report.item)) return " of " + in_quotes(bind->source);
      break;
    case Phase::bind_target:
      if (const auto* bind = at(plan.binds, report.item)) return " " + in_quotes(bind->target);
      break;
    case Phase::directory:
      if (const auto* made = at(plan.directories, report.item)) return " " + in_quotes(*made);
      break;
    case Phase::rlimits:
      if (const auto* limit = at(plan.rlimits, report.item)) return object_of(*limit);
      break;
    default: break;
  }
  return {};
}

bool is_refused(int error_number) {
  return error_number == EPERM || error_number == EACCES;
}

// An ordinary user has rights over the other namespaces only through its own user namespace. Where
// that is forbidden, it gets none, or one without rights, which fails at the first use of them.
bool is_without_user_namespace(const SetupReport& report) {
  if (standing_here() == Standing::root) return false;
  switch (report.failed) {
    case Phase::process:
      return is_refused(report.error_number) || report.error_number == ENOSPC ||
             report.error_number == EUSERS || report.error_number == EINVAL;
    case Phase::network:
    case Phase::ids:
    case Phase::private_mounts: return is_refused(report.error_number);
    default: return false;
  }
}

std::string remedy_of(const Rlimit& limit) {
  const Resource* known = resource_of(limit);
  return "ask for " + hard_limit_of(limit) + " at most, or raise the hard limit of the server" +
         (known != nullptr ? " (" + std::string{known->service_key} + "= in its service)" : "");
}

std::string bind_target_remedy(int error_number) {
  switch (error_number) {
    case EROFS:
      return "choose a target that is there already, or one outside of what is read-only: what is "
             "missing is made where the root can be written, which /usr of the host cannot";
    case EBUSY: return "choose a target from which no link leads to /, /proc or /dev";
    default:
      return "a folder covers a folder and a file a file: choose a target of the same kind as the "
             "source, or one that is not there yet";
  }
}

std::string remedy_of(const Plan& plan, const SetupReport& report) {
  const bool refused = is_refused(report.error_number);
  if (is_without_user_namespace(report)) {
    return why_no_user_namespaces().remedy +
           "; or run the server as root; or accept a sandbox of level minimal";
  }
  switch (report.failed) {
    case Phase::process:
    case Phase::ids:
      return refused ? "run as root with CAP_SYS_ADMIN, or as another user"
                     : "raise the limits of processes and of namespaces for this user";
    case Phase::layer:
    case Phase::bind_source: return "make it, or let the keeper's user read it";
    case Phase::process_table: return "in a container, the outer one must not mask parts of /proc";
    case Phase::process_folder:
    case Phase::device_folder: return "make it a folder in the image, or leave it out there";
    case Phase::scratch_folder:
      return "make it a folder in the image, or a link to one outside of /proc and /dev, or leave "
             "it out there";
    case Phase::name_servers:
      return "make /etc a folder in the image, with no folder of that name in it, or give the "
             "sandbox a network of its own";
    case Phase::bind_target:
      return refused ? "run as root, or where user namespaces may mount"
                     : bind_target_remedy(report.error_number);
    case Phase::directory:
      return refused ? "run as root, or where user namespaces may mount"
                     : "name one that the image has, or that can be made in its root";
    case Phase::root: return "the kernel needs overlayfs, in user namespaces when not root (5.11)";
    case Phase::control_groups: return "give the keeper a control group that it may divide";
    case Phase::rlimits:
      if (const auto* limit = at(plan.rlimits, report.item)) return remedy_of(*limit);
      return "ask for limits within those of the server itself";
    default: return refused ? "run as root, or where user namespaces may mount" : "";
  }
}

}  // namespace

std::string_view name_of(Phase phase) {
  return phase_names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(Feature feature) {
  return feature_names[static_cast<std::size_t>(feature)];
}

Error explain(const Plan& plan, const SetupReport& report) {
  const bool forbidden = is_without_user_namespace(report) || report.failed == Phase::process ||
                         report.failed == Phase::ids;
  return {forbidden ? Errc::sandbox_unavailable : Errc::sandbox_setup_failed,
          "the sandbox could not be made: " + std::string{name_of(report.failed)} +
              object_of(plan, report) + ": " + reason(report.error_number),
          remedy_of(plan, report)};
}

}  // namespace berth::keeper::sandbox
