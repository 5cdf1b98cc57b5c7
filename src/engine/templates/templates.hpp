#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/setup_session.hpp"
#include "core/template_drift.hpp"
#include "engine/templates/template_capture.hpp"
#include "store/places/templates.hpp"

namespace berth::engine {

using store::TemplateFilter;

struct CaptureLease {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(CaptureLease, (), (name))

// Names the template of a row whose capture got no response.
struct AdoptTemplate {
  std::string template_ref;
};
BOOST_DESCRIBE_STRUCT(AdoptTemplate, (), (template_ref))
struct ForgetTemplate {
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(ForgetTemplate, (), (reason))

// What an environment's sandboxes start from, and the session that prepares a new image.
struct CustomImage {
  std::optional<core::Template> active_template = {};
  // Whether the environment's config is still the one that it was captured under.
  std::optional<bool> active_template_matches_config = {};
  std::optional<core::TemplateDrift> active_template_drift = {};
  std::optional<core::SetupSession> active_session = {};
  std::optional<core::SetupSession> latest_session = {};
};
BOOST_DESCRIBE_STRUCT(CustomImage, (),
                      (active_template, active_template_matches_config, active_template_drift,
                       active_session, latest_session))

struct ImageRolledBack {
  core::Template active_template;
  core::Template superseded_template;
};
BOOST_DESCRIBE_STRUCT(ImageRolledBack, (), (active_template, superseded_template))

struct RelinkImage {
  std::optional<bool> confirm_boot_source_drift;
};
BOOST_DESCRIBE_STRUCT(RelinkImage, (), (confirm_boot_source_drift))

struct ImageRelinked {
  core::Template template_;
  core::DriftKind classification = core::DriftKind::knob_only;
};
BOOST_DESCRIBE_STRUCT(ImageRelinked, (), (template_, classification))

// What happens to a template that nothing new starts from.
enum class RevokedTemplate { stays, goes };

// The operators' use cases for templates.
class Templates {
 public:
  Templates(Services& services, LeaseLifecycle& leases, TemplateCapture& work)
      : services_(services), leases_(leases), work_(work) {}

  // Captures the current state of a held lease's place, which continues afterwards.
  Task<core::Template> capture(core::Call call, core::LeaseId lease, CaptureLease wanted);
  Task<core::Listing<core::Template>> list(core::Call call, core::CompanyId company,
                                           TemplateFilter filter, core::PageRequest page);
  Task<core::Template> get(core::Call call, core::TemplateId id);
  // image_in_use while sandboxes, environments or other templates use it.
  Task<core::Template> remove(core::Call call, core::TemplateId id);
  // On an operator's order: names the provider's template for a capture that got no response, which
  // is then deleted there, or states that it does not exist.
  Task<core::Template> adopt(core::Call call, core::TemplateId id, AdoptTemplate wanted);
  Task<core::Template> force_resolve(core::Call call, core::TemplateId id, ForgetTemplate wanted);

  Task<CustomImage> custom_image(core::Call call, core::EnvironmentId environment);
  // Restores the previously active one.
  Task<ImageRolledBack> roll_back(core::Call call, core::EnvironmentId environment);
  // Treats the active template as captured under the environment's current config. Changes beyond
  // knobs must be confirmed: `conflict` lists them.
  Task<ImageRelinked> relink(core::Call call, core::EnvironmentId environment, RelinkImage wanted);
  // New sandboxes of the environment start from its image again. This is recorded before the
  // provider deletes the template, which waits until nothing uses it.
  Task<core::Template> revoke(core::Call call, core::EnvironmentId environment,
                              RevokedTemplate afterwards = RevokedTemplate::stays);

 private:
  Services& services_;
  LeaseLifecycle& leases_;
  TemplateCapture& work_;
};

// In the caller's transaction: the template is about to become its environment's active one.
Result<> supersede(store::Session& session, const core::EnvironmentId& environment, Time now);

}  // namespace berth::engine
