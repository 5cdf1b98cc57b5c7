#pragma once

#include "base/json/json.hpp"

#include <vector>

// The config of the sandbox provider `linux`: what one may ask of a sandbox on this machine.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(LinuxNetwork, none, host)
BOOST_DEFINE_ENUM_CLASS(LinuxUser, user, root)
// Weakenings, each asked for by its name.
BOOST_DEFINE_ENUM_CLASS(LinuxAllowance, ptrace, nested_user_namespaces)
// How strong a sandbox is, weakest first, so that they compare.
BOOST_DEFINE_ENUM_CLASS(Isolation, minimal, weak, standard, strong)

// Which decisions are written down, each with the rule that made it.
BOOST_DEFINE_ENUM_CLASS(EgressLog, all, denied, none)

struct LinuxEgress {
  std::optional<std::vector<std::string>> allow;  // host, *.host, host:port, cidr
  std::optional<std::vector<std::string>> deny;
  std::optional<EgressLog> log;
};
BOOST_DESCRIBE_STRUCT(LinuxEgress, (), (allow, deny, log))

// What is absent is as the sandbox has it by itself.
struct LinuxConfig {
  std::optional<std::string> provider;
  std::optional<std::string> image;  // "host", a name or a digest
  // The name or id of a template to start from. What it was captured on is below it; `image` is
  // not looked at then.
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
  std::optional<std::int64_t> pool_size;  // sandboxes that are kept ready before a run asks
  std::optional<std::int64_t> pool_age_minutes;
  std::optional<bool> stream_run_logs;
  std::optional<bool> archive_on_release;
};
BOOST_DESCRIBE_STRUCT(LinuxConfig, (),
                      (provider, image, template_, memory_mb, swap_mb, pids, cpus, cpu_weight,
                       disk_mb, inodes, open_files, timeout_ms, output_mb, network, egress,
                       min_isolation, reuse_lease, workdir, user, allow, pool_size,
                       pool_age_minutes, stream_run_logs, archive_on_release))

inline constexpr std::string_view linux_provider = "linux";

// What a sandbox can be at most, on any machine, with what the config opens.
Isolation strongest_isolation(const LinuxConfig& config);

// What a policy that is changed while its lease lives must hold to, as one in a config does.
Result<> check_rule_count(const LinuxEgress& egress);

// Every wrong field by its pointer below /config, and what contradicts itself.
Result<LinuxConfig> parse_linux_config(const bj::object& config);
// The stored shape: what was given, and image and reuse in any case.
bj::object to_stored(const LinuxConfig& config);
// For forms: a JSON Schema that stands alone, with the ranges that parse_linux_config checks.
bj::object linux_config_schema();

}  // namespace berth::core
