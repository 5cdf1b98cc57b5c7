#include "keepers/command.hpp"

namespace berth::execution {

PlaceRef PlaceRef::clone() const {
  PlaceRef copy{.lease_id = lease_id,
                .company_id = company_id,
                .environment_id = environment_id,
                .run_id = run_id,
                .sandbox_id = sandbox_id,
                .home_id = home_id,
                .config = config,
                .provider_lease_id = provider_lease_id,
                .metadata = metadata,
                .private_addresses = private_addresses};
  for (const auto& [path, value] : secrets) copy.secrets.emplace(path, value.clone());
  return copy;
}

Task<> Execution::forget_output(const PlaceRef& /*lease*/, const std::string& /*exec_id*/) {
  co_return Result<>{};
}

Task<Usage> Execution::usage(const PlaceRef& lease) {
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() + ": its usage is not measured");
}

Task<std::vector<std::uint16_t>> Execution::listening(const PlaceRef& lease) {
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() + ": its ports cannot be seen from outside",
                 "ask inside: berth exec LEASE -- ss -tln");
}

Task<FileRoot> Execution::files(const PlaceRef& lease) {
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() + ": its place gives no files in or out",
                 "use a command: berth exec LEASE -- tar c FOLDER");
}

Task<Fd> Execution::dial(const PlaceRef& lease, std::uint16_t port) {
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() + ": port " + std::to_string(port) +
                     " cannot be forwarded, because its place has no network of its own",
                 "run the command in an environment of the sandbox provider 'linux'");
}

Task<> Execution::set_egress(const PlaceRef& lease, core::LinuxEgress /*policy*/) {
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() + ": its place has no egress gateway");
}

Task<EgressPage> Execution::egress_log(const PlaceRef& lease, std::uint64_t /*offset*/) {
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() + ": its place has no egress gateway");
}

}  // namespace berth::execution
