#include "engine/start_from.hpp"

#include "core/environment_config.hpp"
#include "core/linux_config.hpp"
#include "store/templates.hpp"

namespace berth::engine {
namespace {

using Row = core::Stored<core::Template>;

// Our own provider lets a person write the name of a template. What others call so is theirs.
std::optional<std::string> named_in(const bj::object& config) {
  if (core::provider_of(config) != core::linux_provider) return std::nullopt;
  const bj::value* named = config.if_contains("template");
  if (named == nullptr || !named->is_string()) return std::nullopt;
  return std::string{named->get_string()};
}

Result<std::optional<Row>> find(store::Session& session, const core::Environment& environment,
                                const std::optional<core::TemplateId>& wanted) {
  if (wanted) {
    return store::find_template(session, core::Reach::only(environment.company_id), *wanted);
  }
  if (const auto named = named_in(environment.config)) {
    return store::find_named_template(session, environment.company_id, *named);
  }
  BERTH_TRY(std::optional<Row> active, store::active_template(session, environment.id));
  // The environment may have changed its provider since.
  const bool fits = active && active->value.provider == core::provider_of(environment.config);
  return fits ? std::move(active) : std::nullopt;
}

Result<> expect_fit(const core::Template& from, const bj::object& config) {
  if (from.status != core::TemplateState::ready) {
    return fail(Errc::conflict, "Template \"" + from.name + "\" cannot be started from: it is " +
                                    std::string{name_of(from.status)});
  }
  if (from.provider == core::provider_of(config)) return {};
  return fail(Errc::conflict, "Template \"" + from.name + "\" is of provider " + from.provider +
                                  ", and the environment of " + core::provider_of(config));
}

}  // namespace

Result<StartFrom> start_from(store::Session& session, const core::Environment& environment,
                             const std::optional<core::TemplateId>& wanted) {
  if (environment.driver != core::DriverKind::sandbox) return StartFrom{environment.config};
  BERTH_TRY(const std::optional<Row> from, find(session, environment, wanted));
  if (!from) return StartFrom{environment.config};
  BERTH_DO(expect_fit(from->value, environment.config));
  return StartFrom{core::bound_config(environment.config, from->value), from->value.id};
}

Result<bj::object> resolve_template(store::Session& session, const core::CompanyId& company,
                                    core::DriverKind driver, bj::object config) {
  const auto named = driver == core::DriverKind::sandbox ? named_in(config) : std::nullopt;
  if (!named) return config;
  BERTH_TRY(const Row from, store::find_named_template(session, company, *named));
  BERTH_DO(expect_fit(from.value, config));
  return core::bound_config(std::move(config), from.value);
}

}  // namespace berth::engine
