#include "engine/templates/setup_sessions.hpp"
#include "api/in_company.hpp"
#include "api/tables.hpp"
#include "engine/templates/setup_terminals.hpp"
#include "engine/templates/templates.hpp"

// Custom images of environments, and the sessions in which a user prepares one.
namespace berth::api {
namespace {

struct RevokeOptions {
  std::optional<core::CompanyId> company_id;
  std::optional<bool> delete_provider_template;
};
BOOST_DESCRIBE_STRUCT(RevokeOptions, (), (company_id, delete_provider_template))

Task<core::Template> revoke_image(engine::Environments& environments, engine::Templates& templates,
                                  core::Call call, core::EnvironmentId id, RevokeOptions options) {
  using engine::RevokedTemplate;
  BERTH_CO_DO(co_await expect_company(environments, call, id, options.company_id));
  const bool goes = options.delete_provider_template.value_or(false);
  co_return co_await templates.revoke(std::move(call), std::move(id),
                                      goes ? RevokedTemplate::goes : RevokedTemplate::stays);
}

Use<OfEnvironment, RevokeOptions, None, core::Template> use_revoke(
    engine::Environments& environments, engine::Templates& templates) {
  return [&environments, &templates](core::Call call, auto in) {
    return revoke_image(environments, templates, std::move(call), std::move(in.target.environment),
                        std::move(in.options));
  };
}

}  // namespace

std::vector<Entry> image_operations(engine::Environments& environments,
                                    engine::Templates& templates) {
  using core::Permission;
  using engine::Templates;
  return {
      Operation{.name = "image.get",
                .needs = Permission::company_operate,
                .says = "What sandboxes of an environment start from, and who prepares another",
                .call = use_in_company(environments, templates, &Templates::custom_image)},
      Operation{.name = "image.roll_back",
                .needs = Permission::company_operate,
                .says = "Make the template that was active before the active one again",
                .call = use_in_company(environments, templates, &Templates::roll_back)},
      Operation{.name = "image.relink",
                .needs = Permission::company_operate,
                .says = "Take the active template for one of the config of today, so that "
                        "sandboxes start from it again",
                .call = use_in_company(environments, templates, &Templates::relink)},
      Operation{.name = "image.revoke",
                .needs = Permission::company_operate,
                .says = "Let sandboxes of an environment start from its image again; the template "
                        "stays, unless deleteProviderTemplate says that it goes as soon as nothing "
                        "stands on it",
                .call = use_revoke(environments, templates)},
  };
}

std::vector<Entry> setup_operations(engine::Environments& environments,
                                    engine::SetupSessions& sessions,
                                    engine::SetupTerminals& terminals) {
  using core::Permission;
  using engine::SetupSessions;
  using engine::SetupTerminals;
  return {
      Operation{.name = "setup.start",
                .needs = Permission::company_operate,
                .says = "Make a sandbox of an environment for an operator to prepare by hand",
                .call = use_in_company(environments, sessions, &SetupSessions::start)},
      Operation{.name = "setup.get",
                .needs = Permission::company_operate,
                .says = "Read a setup session, and how to get into its sandbox",
                .call = use(sessions, &SetupSessions::get)},
      Operation{.name = "setup.finish",
                .needs = Permission::company_operate,
                .says = "Capture the sandbox of a setup session; the environment starts from it "
                        "from now on",
                .call = use(sessions, &SetupSessions::finish)},
      Operation{.name = "setup.cancel",
                .needs = Permission::company_operate,
                .says = "End a setup session without capturing anything",
                .call = use(sessions, &SetupSessions::cancel)},
      Operation{.name = "setup.issue_terminal_token",
                .needs = Permission::company_operate,
                .says = "A token with which a page opens the terminal of a setup session",
                .call = use(terminals, &SetupTerminals::issue)},
  };
}

}  // namespace berth::api
