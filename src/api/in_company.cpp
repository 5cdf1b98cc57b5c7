#include "api/in_company.hpp"

namespace berth::api {

Task<> expect_company(engine::Environments& environments, core::Call call, core::EnvironmentId id,
                      std::optional<core::CompanyId> company) {
  if (!company) co_return Result<>{};
  BERTH_CO_TRY(const auto found, co_await environments.get(std::move(call), std::move(id)));
  if (found.value.company_id == *company) co_return Result<>{};
  co_return fail(
      Errc::forbidden,
      "Environment \"" + found.value.name + "\" does not belong to company " + company->str(),
      "leave companyId out, or name the company of the environment");
}

}  // namespace berth::api
