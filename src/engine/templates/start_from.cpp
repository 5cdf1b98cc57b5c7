#include "engine/templates/start_from.hpp"

#include "base/json/peek.hpp"
#include "core/config/config_path.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "engine/templates/template_capture.hpp"
#include "store/places/environments.hpp"
#include "store/places/templates.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

using StoredTemplate = core::Stored<core::Template>;

// In our own provider's config, users may write a template's name. Such fields of other providers
// are theirs.
std::optional<std::string> named_in(const bj::object& config) {
  if (core::provider_of(config) != core::linux_provider) return std::nullopt;
  return read_loosely<core::LinuxConfig>(config).template_;
}

Result<std::optional<StoredTemplate>> find(store::Session& session,
                                           const core::Environment& environment,
                                           const std::optional<core::TemplateId>& wanted) {
  if (wanted) {
    return store::find_template(session, core::Reach::only(environment.company_id), *wanted);
  }
  if (const auto named = named_in(environment.config)) {
    return store::find_named_template(session, environment.company_id, *named);
  }
  BERTH_TRY(std::optional<StoredTemplate> active, store::active_template(session, environment.id));
  if (!active) return std::nullopt;
  BERTH_TRY(const auto drift, drift_since(session, active->value, environment));
  return core::still_applies(drift) ? std::move(active) : std::nullopt;
}

}  // namespace

Result<> expect_fit(const core::Template& from, const bj::object& config) {
  if (from.status != core::TemplateState::ready) {
    return fail(Errc::conflict, "Template \"" + from.name + "\" cannot be started from: it is " +
                                    std::string{name_of(from.status)});
  }
  if (from.provider == core::provider_of(config)) return {};
  return fail(Errc::conflict, "Template \"" + from.name + "\" is of provider " + from.provider +
                                  ", and the environment of " + core::provider_of(config));
}

Result<std::optional<core::TemplateDrift>> drift_since(store::Session& session,
                                                       const core::Template& from,
                                                       const core::Environment& environment) {
  if (from.source_config == environment.config) return std::nullopt;
  BERTH_TRY(const auto bindings, store::bindings_of_target(session, core::SecretTarget::environment,
                                                           environment.id.str()));
  std::set<std::string> secret_fields;
  for (const core::SecretBinding& binding : bindings) {
    const core::ConfigPath path = core::ConfigPath::parse(binding.config_path);
    if (path.steps().size() == 1) secret_fields.insert(path.steps().front());
  }
  return core::drift_of(from, environment.config, secret_fields);
}

Result<ImageFollows> ImageFollows::before(store::Session& session,
                                          const core::Environment& environment) {
  ImageFollows out;
  BERTH_TRY(out.active_, store::active_template(session, environment.id));
  if (!out.active_) return out;
  BERTH_TRY(const auto drift, drift_since(session, out.active_->value, environment));
  out.applied_ = core::still_applies(drift);
  return out;
}

Result<std::optional<core::ImageReconciliation>> ImageFollows::after(
    store::Session& session, const core::Environment& environment, Time now) {
  if (!active_) return std::nullopt;
  BERTH_TRY(const auto drift, drift_since(session, active_->value, environment));
  const bool applies = core::still_applies(drift);
  // Changed secrets are not drift, and a template that was already detached remains so.
  if (applies == applied_ && (!applies || !drift)) return std::nullopt;
  core::ImageReconciliation done{.template_id = active_->value.id};
  if (drift) {
    done.classification = drift->classification;
    done.drifted_paths = drift->drifted_paths;
  }
  if (!applies) {
    done.action = core::ImageLink::detached;
    return done;
  }
  link(active_->value, environment.config);
  BERTH_DO(store::update_template(session, *std::move(active_), now));
  return done;
}

Result<StartFrom> start_from(store::Session& session, const core::Environment& environment,
                             const std::optional<core::TemplateId>& wanted) {
  if (environment.driver != core::DriverKind::sandbox) return StartFrom{environment.config};
  BERTH_TRY(const std::optional<StoredTemplate> from, find(session, environment, wanted));
  if (!from) return StartFrom{environment.config};
  BERTH_DO(expect_fit(from->value, environment.config));
  return StartFrom{core::bound_config(environment.config, from->value), from->value.id};
}

Result<bj::object> resolve_template(store::Session& session, const core::CompanyId& company,
                                    core::DriverKind driver, bj::object config) {
  const auto named = driver == core::DriverKind::sandbox ? named_in(config) : std::nullopt;
  if (!named) return config;
  BERTH_TRY(const StoredTemplate from, store::find_named_template(session, company, *named));
  BERTH_DO(expect_fit(from.value, config));
  return core::bound_config(std::move(config), from.value);
}

Result<bj::object> name_in_config(store::Session& session, core::Stored<core::Environment> row,
                                  const NameChange& change, Time now) {
  core::Environment& environment = row.value;
  const auto named =
      environment.driver == core::DriverKind::sandbox ? named_in(environment.config) : std::nullopt;
  if (!named) return std::move(environment.config);
  if (change.from) {
    const auto found = store::find_named_template(session, environment.company_id, *named);
    if (!found || found->value.id != *change.from) return std::move(environment.config);
  }
  if (change.to) {
    environment.config["template"] = change.to->str();
  } else {
    environment.config.erase("template");
  }
  environment.updated_at = now;
  BERTH_DO(store::update_environment(session, row));
  return std::move(environment.config);
}

bool names_template(core::DriverKind driver, const bj::object& config) {
  return driver == core::DriverKind::sandbox && named_in(config).has_value();
}

Result<> expect_template(store::Session& session, const core::CompanyId& company,
                         core::DriverKind driver, const bj::object& config) {
  const Result<bj::object> found = resolve_template(session, company, driver, config);
  if (found) return {};
  Error why = found.error();
  if (why.code == Errc::template_not_found || why.code == Errc::conflict) {
    why.code = Errc::unprocessable;
    why.issues.push_back({"/config/template", why.message});
  }
  return std::unexpected(std::move(why));
}

}  // namespace berth::engine
