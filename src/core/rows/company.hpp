#pragma once

#include "base/json/json.hpp"
#include "core/allowances.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// The tenant. Every other row belongs to one company, and no read crosses that boundary.
struct Company {
  CompanyId id;
  std::string name;
  std::optional<std::string> description;
  CompanyStatus status = CompanyStatus::active;
  std::optional<EnvironmentId> default_environment_id;  // for runs whose agent names no environment
  AllowanceDecisions allowances = {};  // only an instance administrator may change them
  // Those that the company has only because it used them before allowances existed.
  std::vector<Allowance> kept_allowances = {};
  Time created_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(Company, (),
                      (id, name, description, status, default_environment_id, allowances,
                       kept_allowances, created_at, updated_at))

}  // namespace berth::core
