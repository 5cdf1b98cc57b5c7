#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/company.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/services.hpp"

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

// An instance administrator's decisions for one company; null means the default of the server's
// mode.
struct UpdateAllowances {
  Patch<bool> local;
  Patch<bool> host_network;
  Patch<bool> private_egress;
  Patch<bool> private_ssh;
  Patch<bool> weak_sandbox;
};
BOOST_DESCRIBE_STRUCT(UpdateAllowances, (),
                      (local, host_network, private_egress, private_ssh, weak_sandbox))

// A company as the API shows it, with what it may use of this machine.
struct CompanyView : core::Company {
  std::vector<core::Allowance> allowed = {};
};
BOOST_DESCRIBE_STRUCT(CompanyView, (core::Company), (allowed))

// Tenants: each is created with a `Local` environment. If this machine supports sandboxes, it also
// gets a `Sandbox` environment, which is its default.
class Companies {
 public:
  Companies(Services& services, const Catalog& catalog) : services_(services), catalog_(catalog) {}

  Task<core::Listing<CompanyView>> list(core::Call call, core::PageRequest page);
  Task<core::Stored<CompanyView>> get(core::Call call, core::CompanyId id);
  Task<core::Stored<CompanyView>> create(core::Call call, CreateCompany wanted);
  Task<core::Stored<CompanyView>> update(core::Call call, core::CompanyId id, UpdateCompany change);
  // `forbidden` for all except instance administrators.
  Task<core::Stored<CompanyView>> allow(core::Call call, core::CompanyId id,
                                        UpdateAllowances change);
  // Removes the company with everything in it; company_in_use while one of its leases is not final.
  Task<CompanyView> remove(core::Call call, core::CompanyId id);

  // Creates the first company if there is none. Safe to call at every start.
  Task<> ensure_one();

 private:
  Result<core::Stored<core::Company>> insert(store::Session& session, const core::Call& call,
                                             const CreateCompany& wanted);

  CompanyView to_view(core::Company company) const;
  core::Stored<CompanyView> to_view(core::Stored<core::Company> row) const;

  Services& services_;
  const Catalog& catalog_;
};

}  // namespace berth::engine
