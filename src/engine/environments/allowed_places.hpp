#pragma once

#include "core/allowances.hpp"
#include "core/rows/company.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "drivers/driver.hpp"
#include "engine/services.hpp"

// Whether a company may use a place, asked wherever one is described, selected or taken. The rule
// itself is core::check_allowed.
namespace berth::engine {

core::Openings openings_of(std::string environment, core::DriverKind driver,
                           const bj::object& config);

// What is in force for a company on this server.
core::Allowances allowed_to(const Services& services, const core::Company& company);

// Whether the server may connect to an address that is not public for a lease of the driver `ssh`.
Result<drivers::PrivateAddresses> private_addresses(store::Session& session,
                                                    const Services& services,
                                                    const core::LeaseRecord& lease);

// In the caller's transaction. not_allowed_here names what is missing.
Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::CompanyId& company, const core::Openings& place);
Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::Environment& environment);
// A place that is held already: it may have been taken before an administrator forbade it.
Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::LeaseRecord& lease);

}  // namespace berth::engine
