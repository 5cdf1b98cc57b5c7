#include "base/clock.hpp"
#include "base/files.hpp"
#include "cli/doctor/check.hpp"
#include "cli/doctor/facts.hpp"

#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>

namespace berth::cli::doctor {
namespace {

constexpr std::size_t small_file = 65536;
constexpr rlim_t open_files_wanted = 8192;
// A clock before the release date of this program is wrong.
constexpr Time earliest{1'767'225'600'000};

}  // namespace

Finding check_system() {
  const std::string text = read_file("/etc/os-release", small_file).value_or("");
  const std::string name = os_release_value(text, "PRETTY_NAME");
  if (name.empty()) return {"system", Verdict::note, "this system does not say what it is"};
  return {"system", Verdict::ok, name};
}

// 5.14 introduced cgroup.kill, which ends a whole process tree at once.
Finding check_kernel() {
  utsname name{};
  ::uname(&name);
  const std::string release = name.release;
  const auto version = version_in(release);
  if (version && *version >= Version{5, 14}) {
    return {"kernel", Verdict::ok, "Linux " + release + " " + name.machine};
  }
  return {"kernel", Verdict::warn,
          "Linux " + release + " is older than 5.14; sandboxes cannot be ended as a whole",
          "install a newer kernel"};
}

Finding check_open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string says =
      std::to_string(limit.rlim_cur) + " open files, at most " + std::to_string(limit.rlim_max);
  if (limit.rlim_cur >= open_files_wanted) return {"open files", Verdict::ok, says};
  if (limit.rlim_max >= open_files_wanted) {
    return {"open files", Verdict::note, says + "; the server may raise its own limit"};
  }
  return {"open files", Verdict::warn, says + ": many connections at once will fail",
          "raise it: LimitNOFILE=65536 in the service, or 'ulimit -n 65536'"};
}

std::string clock_remedy(keeper::sandbox::InitSystem init) {
  if (init == keeper::sandbox::InitSystem::systemd) return "timedatectl set-ntp true";
  return "run a time service: apt-get install chrony, then 'service chrony start'";
}

Finding check_clock() {
  const std::string remedy = clock_remedy(keeper::sandbox::init_system());
  const Time now = SystemClock{}.now();
  if (now < earliest) {
    return {"clock", Verdict::fail,
            "the clock says " + to_iso8601(now) + ": certificates and tokens will be refused",
            remedy};
  }
  timex state{};
  const bool synchronised = ::adjtimex(&state) != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  if (synchronised) return {"clock", Verdict::ok, to_iso8601(now) + ", kept by a time service"};
  return {"clock", Verdict::note, to_iso8601(now) + ", not known to be kept by a time service",
          remedy};
}

}  // namespace berth::cli::doctor
