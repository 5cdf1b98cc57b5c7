#pragma once

#include "core/call.hpp"
#include "core/company.hpp"
#include "core/page.hpp"
#include "engine/catalog.hpp"
#include "engine/means.hpp"

namespace berth::engine {

struct CreateCompany {
  std::string name;
  std::optional<std::string> description;
};
BOOST_DESCRIBE_STRUCT(CreateCompany, (), (name, description))

struct UpdateCompany {
  Patch<std::string> name;
  Patch<std::string> description;
  Patch<core::CompanyStatus> status;
  Patch<core::EnvironmentId> default_environment_id;
};
BOOST_DESCRIBE_STRUCT(UpdateCompany, (), (name, description, status, default_environment_id))

// Tenants: each is made together with its `Local` environment.
class Companies {
 public:
  Companies(Means& means, const Catalog& catalog) : means_(means), catalog_(catalog) {}

  Task<core::Listing<core::Company>> list(core::Call call, core::PageRequest page);
  Task<core::Stored<core::Company>> get(core::Call call, core::CompanyId id);
  Task<core::Stored<core::Company>> create(core::Call call, CreateCompany wanted);
  Task<core::Stored<core::Company>> update(core::Call call, core::CompanyId id,
                                           UpdateCompany change);
  // Removes the company with everything in it; company_in_use while a lease of it is not final.
  Task<core::Company> remove(core::Call call, core::CompanyId id);

  // Makes the first company when there is none. Safe to call at every start.
  Task<> ensure_one();

 private:
  Result<core::Stored<core::Company>> insert(store::Session& session, const core::Call& call,
                                             const CreateCompany& wanted);

  Means& means_;
  const Catalog& catalog_;
};

}  // namespace berth::engine
