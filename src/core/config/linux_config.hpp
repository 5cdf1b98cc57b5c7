#pragma once

#include "base/json/config_form.hpp"

#include <vector>

// The config of sandbox provider `linux`: what can be requested of a sandbox on this machine.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(LinuxNetwork, none, host)
BOOST_DEFINE_ENUM_CLASS(LinuxUser, user, root)
// Weakenings, each requested by name.
BOOST_DEFINE_ENUM_CLASS(LinuxAllowance, ptrace, nested_user_namespaces)
// How strong a sandbox is, weakest first, so that levels compare.
BOOST_DEFINE_ENUM_CLASS(Isolation, minimal, weak, standard, strong)

// Which decisions are logged, each with the rule that made it.
BOOST_DEFINE_ENUM_CLASS(EgressLog, all, denied, none)

struct LinuxEgress {
  std::optional<std::vector<std::string>> allow;  // host, *.host, host:port, cidr
  std::optional<std::vector<std::string>> deny;
  std::optional<EgressLog> log;

  static Notes<LinuxEgress> notes();
};
BOOST_DESCRIBE_STRUCT(LinuxEgress, (), (allow, deny, log))

// An absent field has the sandbox's default.
struct LinuxConfig {
  std::optional<std::string> provider;
  std::optional<std::string> image;  // "host", a name or a digest
  // The name or id of a template to start from. The template includes its base image, so `image` is
  // then ignored.
  std::optional<std::string> template_;
  std::optional<std::int64_t> memory_mb;
  std::optional<std::int64_t> swap_mb;
  std::optional<std::int64_t> pids;
  std::optional<double> cpus;
  std::optional<std::int64_t> cpu_weight;
  std::optional<std::int64_t> disk_mb;
  std::optional<std::int64_t> inodes;
  std::optional<std::int64_t> open_files;
  std::optional<std::int64_t> timeout_ms;
  std::optional<std::int64_t> output_mb;
  std::optional<LinuxNetwork> network;
  std::optional<LinuxEgress> egress;
  std::optional<Isolation> min_isolation;
  std::optional<bool> reuse_lease;
  std::optional<std::string> workdir;
  std::optional<LinuxUser> user;
  std::optional<std::vector<LinuxAllowance>> allow;
  std::optional<std::int64_t> pool_size;  // sandboxes kept ready before a run needs one
  std::optional<std::int64_t> pool_age_minutes;
  std::optional<bool> stream_run_logs;
  std::optional<bool> archive_on_release;

  static Notes<LinuxConfig> notes();
};
BOOST_DESCRIBE_STRUCT(LinuxConfig, (),
                      (provider, image, template_, memory_mb, swap_mb, pids, cpus, cpu_weight,
                       disk_mb, inodes, open_files, timeout_ms, output_mb, network, egress,
                       min_isolation, reuse_lease, workdir, user, allow, pool_size,
                       pool_age_minutes, stream_run_logs, archive_on_release))

inline constexpr std::string_view linux_provider = "linux";

// The strongest isolation that the config's weakenings allow on any machine.
Isolation strongest_isolation(const LinuxConfig& config);

// The rule limit for a policy that is changed during a lease, the same as for one in a config.
Result<> check_rule_count(const LinuxEgress& egress);

// Reports every invalid field by its pointer below /config, and contradictions between fields.
Result<LinuxConfig> parse_linux_config(const bj::object& config);
// The stored form: the given fields, and always image and reuse.
bj::object to_stored(const LinuxConfig& config);
// For forms: a self-contained JSON Schema. It has no `provider`, which chooses the schema.
bj::object linux_config_schema();

}  // namespace berth::core
