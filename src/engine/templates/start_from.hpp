#pragma once

#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/template_drift.hpp"
#include "store/store.hpp"

namespace berth::engine {

// With what a sandbox of an environment is made.
struct StartFrom {
  bj::object config;
  std::optional<core::TemplateId> template_id = {};
};

// How the environment's config differs from the one that the template was captured under.
Result<std::optional<core::TemplateDrift>> drift_since(store::Session& session,
                                                       const core::Template& from,
                                                       const core::Environment& environment);

// Keeps the active template of an environment in step with its config, in the transaction that
// changes the config: an edit of knobs leaves it one of this config, an edit of the boot source
// lets it stand back, and an edit that takes that one back brings it back.
class ImageFollows {
 public:
  static Result<ImageFollows> before(store::Session& session, const core::Environment& environment);
  // Nothing where the edit changed nothing for the template.
  Result<std::optional<core::ImageReconciliation>> after(store::Session& session,
                                                         const core::Environment& environment,
                                                         Time now);

 private:
  std::optional<core::Stored<core::Template>> active_;
  bool applied_ = false;
};

// The config of the environment, bound to the template that is wanted, or that the config names, or
// that is the environment's active one. Templates of other companies are not found. An active one
// whose boot source the environment has changed since stands back until it is linked again.
Result<StartFrom> start_from(store::Session& session, const core::Environment& environment,
                             const std::optional<core::TemplateId>& wanted);

// The same for a config that is not saved: a template that it names becomes the provider's
// reference to it.
Result<bj::object> resolve_template(store::Session& session, const core::CompanyId& company,
                                    core::DriverKind driver, bj::object config);

// A template that the config names is what sandboxes start from, whichever is the active one. So
// where it names one, it follows: to the template that becomes active, or to none. Returns the
// config of now.
struct NameChange {
  std::optional<core::TemplateId> from = {};  // a config that names another one stays; none: any
  std::optional<core::TemplateId> to = {};
};
Result<bj::object> name_in_config(store::Session& session, core::Stored<core::Environment> row,
                                  const NameChange& change, Time now);

// `conflict` where sandboxes of the config cannot start from the template, whatever anybody wants.
Result<> expect_fit(const core::Template& from, const bj::object& config);
// Whether a config names a template to start from.
bool names_template(core::DriverKind driver, const bj::object& config);
// That the template is there and fits: `unprocessable`, with the pointer of the field, where not.
Result<> expect_template(store::Session& session, const core::CompanyId& company,
                         core::DriverKind driver, const bj::object& config);

}  // namespace berth::engine
