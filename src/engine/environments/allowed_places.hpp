#pragma once

#include "core/allowances.hpp"
#include "core/rows/company.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "engine/services.hpp"
#include "places/place.hpp"

// Whether a company may use a place, checked wherever one is described, selected or acquired. The
// rule itself is core::check_allowed.
namespace berth::engine {

core::Openings openings_of(std::string environment, core::DriverKind driver,
                           const bj::object& config);

// The allowances in effect for a company on this server.
core::Allowances allowed_to(const Services& services, const core::Company& company);

// Whether the server may connect to a non-public address for a lease of driver `ssh`.
Result<places::PrivateAddresses> private_addresses(store::Session& session,
                                                   const Services& services,
                                                   const core::LeaseRecord& lease);

// In the caller's transaction. not_allowed_here names what is missing.
Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::CompanyId& company, const core::Openings& place);
Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::Environment& environment);
// For a place that is already held: it may have been acquired before an administrator forbade it.
Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::LeaseRecord& lease);

}  // namespace berth::engine
