#pragma once

#include "core/environment.hpp"
#include "core/template.hpp"
#include "store/store.hpp"

namespace berth::engine {

// With what a sandbox of an environment is made.
struct StartFrom {
  bj::object config;
  std::optional<core::TemplateId> template_id = {};
};

// The config of the environment, bound to the template that is wanted, or that the config names, or
// that is the environment's active one. Templates of other companies are not found.
Result<StartFrom> start_from(store::Session& session, const core::Environment& environment,
                             const std::optional<core::TemplateId>& wanted);

// The same for a config that is not saved: a template that it names becomes the provider's
// reference to it.
Result<bj::object> resolve_template(store::Session& session, const core::CompanyId& company,
                                    core::DriverKind driver, bj::object config);

}  // namespace berth::engine
