#pragma once

#include "api/use.hpp"
#include "engine/environments/environments.hpp"

namespace berth::api {

// Fails unless the environment belongs to the company, if one is given.
Task<> expect_company(engine::Environments& environments, core::Call call, core::EnvironmentId id,
                      std::optional<core::CompanyId> company);

namespace in_company_detail {

template <class Answer, class Next>
Task<Answer> in_company(engine::Environments& environments, core::Call call, core::EnvironmentId id,
                        std::optional<core::CompanyId> company, Next next) {
  BERTH_CO_DO(co_await expect_company(environments, call, id, std::move(company)));
  co_return co_await next();
}

}  // namespace in_company_detail

// Like `use`, for an environment, or what belongs to one, whose company the caller may name too.
template <class S, class Answer>
Use<OfEnvironment, CompanyOption, None, Answer> use_in_company(
    engine::Environments& environments, S& service,
    Task<Answer> (S::*method)(core::Call, core::EnvironmentId)) {
  return [&environments, &service, method](core::Call call, auto in) {
    core::EnvironmentId id = std::move(in.target.environment);
    const auto next = [&service, method, call, id] { return (service.*method)(call, id); };
    return in_company_detail::in_company<Answer>(environments, call, id,
                                                 std::move(in.options.company_id), next);
  };
}

template <class S, class Answer, DescribedStruct Body>
Use<OfEnvironment, CompanyOption, Body, Answer> use_in_company(
    engine::Environments& environments, S& service,
    Task<Answer> (S::*method)(core::Call, core::EnvironmentId, Body)) {
  return [&environments, &service, method](core::Call call, auto in) {
    core::EnvironmentId id = std::move(in.target.environment);
    const auto next = [&service, method, call, id, body = std::move(in.body)] {
      return (service.*method)(call, id, body);
    };
    return in_company_detail::in_company<Answer>(environments, call, id,
                                                 std::move(in.options.company_id), next);
  };
}

}  // namespace berth::api
