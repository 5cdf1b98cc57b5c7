#pragma once

#include "engine/environments/environments.hpp"
#include "http/routes/inputs.hpp"

namespace berth::http {

// Clients shared with other control planes name the company beside the object. It is optional, but
// if given it must be the object's company.
struct CompanyQuery {
  std::optional<core::CompanyId> company_id;
};
BOOST_DESCRIBE_STRUCT(CompanyQuery, (), (company_id))

// Calls `next` after checking that the company in the query is the environment's.
template <class Next>
auto in_company(engine::Environments& environments, core::Call call, core::EnvironmentId id,
                std::optional<core::CompanyId> company, Next next) -> std::invoke_result_t<Next&> {
  if (company) {
    BERTH_CO_TRY(const auto found, co_await environments.get(call, id));
    if (found.value.company_id != *company) {
      co_return fail(
          Errc::forbidden,
          "Environment \"" + found.value.name + "\" does not belong to company " + company->str(),
          "leave companyId out, or name the company of the environment");
    }
  }
  co_return co_await next();
}

}  // namespace berth::http
