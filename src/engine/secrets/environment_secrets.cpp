#include "engine/secrets/environment_secrets.hpp"

#include "core/config/provider_config.hpp"
#include "core/output/redaction.hpp"
#include "engine/journal.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

constexpr std::size_t slug_length_max = 48;

std::string secret_name(const core::Environment& environment, const std::string& path,
                        Random& random) {
  std::array<unsigned char, 4> raw{};
  random.fill(raw);
  std::string slug = core::secret_key_of(environment.name).substr(0, slug_length_max);
  if (slug.empty()) slug = "environment";
  const std::string field =
      path == "privateKeySecretRef" ? "private-key" : core::secret_key_of(path);
  return "environment-" + std::string{name_of(environment.driver)} + "-" + slug + "-" + field +
         "-" + hex(raw);
}

core::SecretBinding to_binding(const Services& services, const core::CompanyId& company,
                               core::SecretTarget target, const std::string& target_id,
                               const core::BoundRef& ref) {
  const Time now = services.clock.now();
  return {.id = core::BindingId::make(services.random, now),
          .company_id = company,
          .secret_id = ref.ref.secret_id,
          .target_type = target,
          .target_id = target_id,
          .config_path = ref.path,
          .version_selector = ref.ref.version,
          .required = true,
          .label = std::nullopt,
          .projection_class = core::SecretProjection::unclassified,
          .projection_allowlist_key = std::nullopt,
          .created_at = now,
          .updated_at = now};
}

}  // namespace

Result<> store_config_values(store::Session& session, Services& services, const core::Call& call,
                             const core::Environment& environment, core::ConfigForStore& config) {
  for (const core::BoundValue& value : config.values) {
    const std::string name = secret_name(environment, value.path, services.random);
    const NewSecret wanted{.company_id = environment.company_id,
                           .name = name,
                           .key = core::secret_key_of(name),
                           .description = "Secret for " + environment.name + " " + value.path + ".",
                           .provider_metadata = std::nullopt,
                           .owned_by_environment_id = environment.id};
    BERTH_TRY(const auto secret, insert_sealed(session, services, call, wanted, value.value));
    core::set_secret_ref(config, value.path, {.secret_id = secret.id});
  }
  return {};
}

Result<> bind_refs(store::Session& session, const Services& services,
                   const core::CompanyId& company, core::SecretTarget target,
                   const std::string& target_id, BindingPart part,
                   const std::vector<core::BoundRef>& refs) {
  std::vector<core::SecretBinding> bindings;
  for (const core::BoundRef& ref : refs) {
    const auto found = store::find_secret(session, core::Reach::only(company), ref.ref.secret_id);
    if (!found && found.error().code == Errc::secret_not_found) {
      return std::unexpected(Error{Errc::secret_missing,
                                   "Secret referenced at " + ref.path + " was not found",
                                   "list the company's secrets and take an id from there",
                                   {{"/" + ref.path, "names no secret of this company"}}});
    }
    if (!found) return std::unexpected(found.error());
    bindings.push_back(to_binding(services, company, target, target_id, ref));
  }
  const bool env = part == BindingPart::env_vars;
  return store::replace_bindings(session,
                                 {.target_type = target,
                                  .target_id = target_id,
                                  .path_prefix = env ? "env." : "",
                                  .except_prefix = env ? "" : "env."},
                                 bindings);
}

Result<bj::object> spelled_out(store::Session& session, const core::EnvironmentId& environment,
                               bj::object config) {
  BERTH_TRY(const auto bindings,
            store::bindings_of_target(session, core::SecretTarget::environment, environment.str()));
  std::vector<core::BoundRef> refs;
  for (const core::SecretBinding& binding : bindings) {
    refs.push_back({binding.config_path,
                    {.secret_id = binding.secret_id, .version = binding.version_selector}});
  }
  return core::spell_out_refs(std::move(config), refs);
}

std::string without_secrets(std::string_view text, const std::map<std::string, Secret>& secrets) {
  std::vector<Secret> values;
  for (const auto& [path, value] : secrets) values.emplace_back(value.reveal());
  const core::RedactionSet set{values};
  if (set.empty()) return std::string{text};
  core::Redactor redactor{set};
  std::string out = redactor.push(text);
  out += redactor.flush();
  return out;
}

Error without_secrets(Error error, const std::map<std::string, Secret>& secrets) {
  if (secrets.empty()) return error;
  error.message = without_secrets(error.message, secrets);
  for (Issue& issue : error.issues) issue.message = without_secrets(issue.message, secrets);
  return error;
}

Result<> drop_unused_owned(store::Session& session, Services& services, const core::Call& call,
                           const core::EnvironmentId& environment) {
  BERTH_TRY(const auto owned, store::secrets_owned_by(session, environment));
  for (const core::SecretId& id : owned) {
    BERTH_TRY(const auto bindings, store::bindings_of_secret(session, id));
    const auto ours = [&](const core::SecretBinding& binding) {
      return binding.target_type == core::SecretTarget::environment &&
             binding.target_id == environment.str();
    };
    if (std::ranges::any_of(bindings, ours)) continue;
    BERTH_TRY(const bool needed, store::is_needed_for_teardown(session, id));
    if (needed) continue;
    BERTH_TRY(auto secret, store::find_secret(session, core::Reach::everything(), id));
    if (bindings.empty()) {
      BERTH_DO(store::delete_secret(session, id));
      BERTH_DO(
          record(session, services, call,
                 {secret.value.company_id,
                  "secret.deleted",
                  "secret",
                  id.str(),
                  {{"name", secret.value.name}, {"reason", "its environment field is gone"}}}));
    } else {
      secret.value.owned_by_environment_id.reset();
      BERTH_DO(store::update_secret(session, secret));
    }
  }
  return {};
}

}  // namespace berth::engine
