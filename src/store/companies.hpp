#pragma once

#include "core/access.hpp"
#include "core/rows/company.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Company> = "companies";

Result<> insert_company(Session& session, const core::Company& company);
// Ordered by (created_at, id) descending. Only companies within reach.
Result<Page<core::Company>> list_companies(Session& session, const core::Reach& reach,
                                           const PageRequest& page);
// company_not_found for a missing company and for one out of reach: the caller cannot distinguish
// them.
Result<Stored<core::Company>> find_company(Session& session, const core::Reach& reach,
                                           const core::CompanyId& id);
// The same for callers that only check its existence.
Result<> expect_company(Session& session, const core::Reach& reach, const core::CompanyId& id);
// Called in the transaction that created the company: an environment needs its company's row before
// it can be the default.
Result<> set_first_default(Session& session, const core::Company& company);
// `conflict` when the row changed since it was read.
Result<> update_company(Session& session, const Stored<core::Company>& company);
// Removes the company and everything that belongs to it. company_in_use while it has leases that
// are not final.
Result<> delete_company(Session& session, const core::CompanyId& id);
Result<std::int64_t> count_companies(Session& session);

}  // namespace berth::store
