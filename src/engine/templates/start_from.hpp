#pragma once

#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/template_drift.hpp"
#include "store/store.hpp"

namespace berth::engine {

// What a sandbox of an environment is created from.
struct StartFrom {
  bj::object config;
  std::optional<core::TemplateId> template_id = {};
};

// How the environment's config differs from the one that the template was captured under.
Result<std::optional<core::TemplateDrift>> drift_since(store::Session& session,
                                                       const core::Template& from,
                                                       const core::Environment& environment);

// Keeps an environment's active template in step with its config, in the transaction that changes
// the config. An edit of knobs relinks the template, an edit of the boot source detaches it, and
// reverting that edit attaches it again.
class ImageFollows {
 public:
  static Result<ImageFollows> before(store::Session& session, const core::Environment& environment);
  // Empty if the edit changed nothing for the template.
  Result<std::optional<core::ImageReconciliation>> after(store::Session& session,
                                                         const core::Environment& environment,
                                                         Time now);

 private:
  std::optional<core::Stored<core::Template>> active_;
  bool applied_ = false;
};

// The environment's config, bound to the wanted template, the one that the config names, or the
// environment's active one. Templates of other companies are not found. An active template is
// ignored after a boot source change until it is relinked.
Result<StartFrom> start_from(store::Session& session, const core::Environment& environment,
                             const std::optional<core::TemplateId>& wanted);

// The same for an unsaved config: a template that it names becomes the provider's reference.
Result<bj::object> resolve_template(store::Session& session, const core::CompanyId& company,
                                    core::DriverKind driver, bj::object config);

// If the config names a template, sandboxes start from that one, whichever is active. So this
// updates the name to the template that becomes active, or removes it. Returns the resulting
// config.
struct NameChange {
  std::optional<core::TemplateId> from = {};  // only replaces this name; absent: any
  std::optional<core::TemplateId> to = {};
};
Result<bj::object> name_in_config(store::Session& session, core::Stored<core::Environment> row,
                                  const NameChange& change, Time now);

// `conflict` if sandboxes with this config cannot start from the template at all.
Result<> expect_fit(const core::Template& from, const bj::object& config);
// Whether a config names a template to start from.
bool names_template(core::DriverKind driver, const bj::object& config);
// Checks that the template exists and fits; otherwise `unprocessable`, with the field's pointer.
Result<> expect_template(store::Session& session, const core::CompanyId& company,
                         core::DriverKind driver, const bj::object& config);

}  // namespace berth::engine
