#pragma once

#include "base/disk_room.hpp"
#include "cli/config.hpp"
#include "cli/doctor/facts.hpp"
#include "keeper/sandbox/cgroup/cgroup_layout.hpp"

#include <optional>
#include <string>
#include <vector>

namespace berth::cli::doctor {

// `note` is a neutral fact; `warn` limits what Berth can do; `fail` stops it.
BOOST_DEFINE_ENUM_CLASS(Verdict, ok, note, warn, fail)

struct Finding {
  std::string check;
  Verdict verdict = Verdict::ok;
  std::string says;
  std::string remedy = {};  // a command if there is one
};
BOOST_DESCRIBE_STRUCT(Finding, (), (check, verdict, says, remedy))

// What the checks examine.
struct Machine {
  Settings settings;
  std::optional<Error> config_error = {};
  std::string server_url;
};

// All checks, in display order. Changes nothing.
std::vector<Finding> examine(const Machine& machine);

// system.cpp: the kernel and its limits.
Finding check_system();
Finding check_kernel();
Finding check_open_files();
Finding check_clock();
// How to enable a time service.
std::string clock_remedy(keeper::sandbox::InitSystem init);

// isolation.cpp: what sandboxes need.
Finding check_user_namespaces();
Finding check_overlayfs();
Finding check_cgroups();
Finding check_cgroups(const keeper::sandbox::CgroupLayout& layout, Cgroups mounted);
Finding check_landlock();
Finding check_seccomp();
Finding check_kvm();

// sandbox.cpp: how strong a sandbox is here, and everything that it lacks.
std::vector<Finding> check_sandbox(const Machine& machine);

// tools.cpp: programs that Berth calls.
Finding check_keeper(const Machine& machine);
Finding check_ssh();
Finding check_git();
Finding check_node();

// plugins.cpp: plugins, as the server lists them, with weaker isolation than possible.
std::vector<Finding> judge_plugins(const bj::value& list);

// server.cpp: the server's own files and address.
Finding check_configuration(const Machine& machine);
Finding check_home(const Machine& machine);
// The free disk space of a home folder; `home` is its name, with other known facts.
Finding judge_home(const std::string& home, const DiskRoom& room);
// Whether old runs and logs are ever removed: home folders of older versions keep them until this
// is set.
Finding judge_retention(std::int64_t run_days, std::int64_t log_days);
// The same from a running server, if this caller may read its settings.
std::optional<Finding> check_retention(const Machine& machine);
Finding check_master_key(const Machine& machine);
Finding check_database(const Machine& machine);
Finding check_listen(const Machine& machine);
Finding check_tls(const Machine& machine);
// Whether every local user can run commands as root.
constexpr bool makes_everybody_root(Mode mode, TrustedUsers trusted, unsigned server_user) {
  return mode == Mode::local_trusted && trusted == TrustedUsers::all && server_user == 0;
}
inline constexpr std::string_view root_remedy =
    "start the server with --trusted-users own, as an ordinary user, or with --mode authenticated";
Finding check_trust(const Machine& machine);
// Companies, as the server lists them, that use this machine without isolation only because they
// did so before allowances existed.
std::vector<Finding> judge_kept(const bj::array& companies);
Finding judge_trust(Mode mode, TrustedUsers trusted, unsigned server_user);

}  // namespace berth::cli::doctor
