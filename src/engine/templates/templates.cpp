#include "engine/templates/templates.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/listing.hpp"
#include "engine/templates/start_from.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/setup_sessions.hpp"

namespace berth::engine {
namespace {

using core::Template;
using core::TemplateRole;
using TemplateRow = TemplateCapture::Row;

constexpr std::int64_t disabled_again_ms = 60'000;

Entry named_entry(const Template& row, std::string_view action) {
  bj::object details{{"name", row.name}};
  if (row.environment_id) details["environmentId"] = row.environment_id->str();
  return {row.company_id, action, "template", row.id.str(), std::move(details)};
}

std::unexpected<Error> no_active(const core::Environment& environment) {
  return fail(Errc::template_not_found,
              "Environment \"" + environment.name + "\" has no active template",
              "prepare one: berth env setup ENVIRONMENT");
}

// Reports field names, never their values.
std::unexpected<Error> drifted(const core::Environment& environment,
                               const core::TemplateDrift& drift) {
  Error error{.code = Errc::conflict,
              .message = "The config of environment \"" + environment.name +
                         "\" names another thing to start from than when its template was captured",
              .remedy =
                  "confirm that its sandboxes start from the template all the same: berth env "
                  "image ENVIRONMENT --relink --confirm"};
  error.facts["classification"] = {std::string{name_of(drift.classification)}};
  error.facts["driftedPaths"] = drift.drifted_paths;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<> supersede(store::Session& session, const core::EnvironmentId& environment, Time now) {
  BERTH_TRY(auto before, store::active_template(session, environment));
  if (!before) return {};
  before->value.role = TemplateRole::superseded;
  BERTH_DO(store::update_template(session, *std::move(before), now));
  return {};
}

Task<Template> Templates::capture(core::Call call, core::LeaseId lease, CaptureLease wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  // A retried request gets the same template; only the request that created it captures.
  std::optional<TemplateRow> begun;
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(auto held, store::find_lease_record(s, core::Reach::of(call.who), lease));
    BERTH_DO(expect_held(s, held.value, leases_.node()));
    BERTH_TRY(begun, work_.intend(s, held.value, {.name = wanted.name}));
    BERTH_DO(record(s, services_, call, named_entry(begun->value, "template.capture_asked")));
    return begun->value.id.str();
  };
  const auto is_given_up = [](store::Session& s, const std::string& before) -> Result<bool> {
    BERTH_TRY(const core::TemplateId known, core::TemplateId::parse(before));
    return store::was_never_captured(s, known);
  };
  BERTH_CO_TRY(const std::string id,
               co_await idempotent_write(services_, call, begin, is_given_up));
  if (!begun || begun->value.id.str() != id) {
    BERTH_CO_TRY(const core::TemplateId known, core::TemplateId::parse(id));
    BERTH_CO_TRY(Template row, co_await get(call, known));
    if (row.captured_at) co_return row;
    if (row.status == core::TemplateState::capturing) {
      co_return fail(Errc::conflict, "Template \"" + row.name + "\" is being captured",
                     "ask again when it is there");
    }
    co_return fail(Errc::conflict,
                   "Template \"" + row.name + "\" could not be captured and is being removed",
                   "ask again when it is gone; then it is captured anew");
  }
  BERTH_CO_TRY(auto held, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::of(call.who), lease);
  }));
  BERTH_CO_TRY(TemplateRow row,
               co_await work_.capture(*std::move(begun), std::move(held.value), {}));
  co_return std::move(row.value);
}

Task<core::Listing<Template>> Templates::list(core::Call call, core::CompanyId company,
                                              store::TemplateFilter filter,
                                              core::PageRequest page) {
  using Rows = core::Page<Template>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::find_company(s, core::Reach::of(call.who), company));
    return store::list_templates(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows));
}

Task<Template> Templates::get(core::Call call, core::TemplateId id) {
  BERTH_CO_TRY(TemplateRow row, co_await services_.store.read([&](store::Session& s) {
    return store::find_template(s, core::Reach::of(call.who), id);
  }));
  co_return std::move(row.value);
}

Task<Template> Templates::remove(core::Call call, core::TemplateId id) {
  const auto begin = [&](store::Session& s) -> Result<TemplateRow> {
    BERTH_TRY(TemplateRow row, store::find_template(s, core::Reach::of(call.who), id));
    if (row.value.status == core::TemplateState::capturing) {
      return fail(Errc::conflict, "Template \"" + row.value.name + "\" is being captured",
                  "wait for it, or for its failure");
    }
    BERTH_DO(record(s, services_, call, named_entry(row.value, "template.delete_asked")));
    if (row.value.status == core::TemplateState::deleting) return row;
    return work_.begin_delete(s, std::move(row));
  };
  BERTH_CO_TRY(TemplateRow row, co_await services_.store.write(begin));
  BERTH_CO_TRY(row, co_await work_.settle(std::move(row)));
  if (row.value.status == core::TemplateState::deleting) {
    co_return fail(Errc::image_in_use,
                   row.value.failure_reason.value_or("it cannot be deleted yet"),
                   is_unanswered(row.value) ? "it waits for an operator: say which one it is"
                                            : "it is tried again by itself");
  }
  co_return std::move(row.value);
}

Task<Template> Templates::adopt(core::Call call, core::TemplateId id, AdoptTemplate wanted) {
  if (wanted.template_ref.empty()) {
    co_return fail(Errc::validation_failed, "/templateRef: must not be empty");
  }
  const auto name = [&](store::Session& s) -> Result<TemplateRow> {
    BERTH_TRY(TemplateRow row, store::find_template(s, core::Reach::of(call.who), id));
    BERTH_TRY(row, work_.adopt(s, std::move(row), wanted.template_ref));
    BERTH_DO(record(s, services_, call, named_entry(row.value, "template.named")));
    return row;
  };
  BERTH_CO_TRY(const TemplateRow row, co_await services_.store.write(name));
  BERTH_CO_TRY(TemplateRow settled, co_await work_.settle(row));
  co_return std::move(settled.value);
}

Task<Template> Templates::force_resolve(core::Call call, core::TemplateId id,
                                        ForgetTemplate wanted) {
  const auto work = [&](store::Session& s) -> Result<TemplateRow> {
    BERTH_TRY(TemplateRow row, store::find_template(s, core::Reach::of(call.who), id));
    BERTH_TRY(row, work_.force_end(s, std::move(row), wanted.reason));
    BERTH_DO(record(s, services_, call, named_entry(row.value, "template.force_resolved")));
    return row;
  };
  BERTH_CO_TRY(TemplateRow row, co_await services_.store.write(work));
  services_.feed.changed(row.value.company_id);
  co_return std::move(row.value);
}

Task<CustomImage> Templates::custom_image(core::Call call, core::EnvironmentId environment) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<CustomImage> {
    BERTH_TRY(const auto row, store::find_environment(s, core::Reach::of(call.who), environment));
    CustomImage out;
    BERTH_TRY(auto active, store::active_template(s, environment));
    if (active) {
      BERTH_TRY(out.active_template_drift, drift_since(s, active->value, row.value));
      out.active_template_matches_config = core::still_applies(out.active_template_drift);
      out.active_template = std::move(active->value);
    }
    BERTH_TRY(auto latest, store::latest_setup_session(s, environment));
    if (latest) out.latest_session = std::move(latest->value);
    if (out.latest_session && !core::is_final(out.latest_session->status)) {
      out.active_session = out.latest_session;
    }
    return out;
  });
}

Task<ImageRolledBack> Templates::roll_back(core::Call call, core::EnvironmentId environment) {
  const auto work = [&](store::Session& s) -> Result<ImageRolledBack> {
    const Time now = services_.clock.now();
    BERTH_TRY(const auto row, store::find_environment(s, core::Reach::of(call.who), environment));
    BERTH_TRY(auto active, store::active_template(s, environment));
    if (!active) return no_active(row.value);
    BERTH_TRY(auto before, store::superseded_template(s, environment));
    if (!before) {
      return fail(Errc::template_not_found,
                  "Environment \"" + row.value.name + "\" has no template before its active one",
                  "revoke the active one to start from the image again");
    }
    active->value.role = TemplateRole::revoked;
    BERTH_TRY(active, store::update_template(s, *std::move(active), now));
    before->value.role = TemplateRole::active;
    BERTH_TRY(const bj::object config,
              name_in_config(s, row, {.from = active->value.id, .to = before->value.id}, now));
    if (config != row.value.config) link(before->value, config);
    BERTH_TRY(before, store::update_template(s, *std::move(before), now));
    BERTH_DO(record(s, services_, call,
                    named_entry(before->value, "environment.custom_image_template.rolled_back")));
    return ImageRolledBack{std::move(before->value), std::move(active->value)};
  };
  BERTH_CO_TRY(ImageRolledBack done, co_await idempotent_write(services_, call, work));
  services_.feed.changed(done.active_template.company_id);
  services_.feed.environments_changed();
  co_return done;
}

Task<ImageRelinked> Templates::relink(core::Call call, core::EnvironmentId environment,
                                      RelinkImage wanted) {
  const auto work = [&](store::Session& s) -> Result<ImageRelinked> {
    BERTH_TRY(const auto row, store::find_environment(s, core::Reach::of(call.who), environment));
    BERTH_TRY(auto active, store::active_template(s, environment));
    if (!active) {
      Error none = no_active(row.value).error();
      none.code = Errc::conflict;
      return std::unexpected(std::move(none));
    }
    BERTH_DO(expect_fit(active->value, row.value.config));
    BERTH_TRY(const auto drift, drift_since(s, active->value, row.value));
    const bool is_confirmed = wanted.confirm_boot_source_drift.value_or(false);
    if (!core::still_applies(drift) && !is_confirmed) return drifted(row.value, *drift);
    link(active->value, row.value.config);
    BERTH_TRY(active, store::update_template(s, *std::move(active), services_.clock.now()));
    BERTH_DO(record(s, services_, call,
                    named_entry(active->value, "environment.custom_image_template.relinked")));
    return ImageRelinked{std::move(active->value),
                         drift ? drift->classification : core::DriftKind::knob_only};
  };
  BERTH_CO_TRY(ImageRelinked done, co_await idempotent_write(services_, call, work));
  services_.feed.changed(done.template_.company_id);
  services_.feed.environments_changed();
  co_return done;
}

Task<Template> Templates::revoke(core::Call call, core::EnvironmentId environment,
                                 RevokedTemplate afterwards) {
  const auto work = [&](store::Session& s) -> Result<TemplateRow> {
    const Time now = services_.clock.now();
    BERTH_TRY(const auto row, store::find_environment(s, core::Reach::of(call.who), environment));
    BERTH_TRY(auto active, store::active_template(s, environment));
    if (!active) return no_active(row.value);
    active->value.role = TemplateRole::revoked;
    BERTH_DO(name_in_config(s, row, {.from = active->value.id}, now));
    if (afterwards == RevokedTemplate::goes) {
      active->value.expendable = true;
      active->value.next_attempt_at = now + disabled_again_ms;  // if this server does not
    }
    BERTH_TRY(active, store::update_template(s, *std::move(active), now));
    BERTH_DO(record(s, services_, call,
                    named_entry(active->value, "environment.custom_image_template.disabled")));
    return *std::move(active);
  };
  BERTH_CO_TRY(const TemplateRow revoked, co_await services_.store.write(work));
  services_.feed.changed(revoked.value.company_id);
  services_.feed.environments_changed();
  if (afterwards == RevokedTemplate::goes) {
    fault_point("revoke.recorded");
    // If this fails, the sweeper deletes it; it is revoked in any case.
    const Result<> gone = co_await work_.look_at(revoked);
    if (!gone) log::warn("template.not_deleted", {{"error", gone.error().message}});
  }
  co_return revoked.value;
}

}  // namespace berth::engine
