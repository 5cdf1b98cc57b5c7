#include "cli/commands/common.hpp"
#include "core/enums.hpp"

namespace berth::cli {
namespace {

struct CompanyOptions {
  std::string named;
  std::string name;
  std::optional<std::string> description;
  std::string status;
  std::optional<std::string> environment;
};

Result<> create(Session& session, const CompanyOptions& options) {
  bj::object body{{"name", options.name}};
  set_nullable(body, "description", options.description);
  BERTH_TRY(const bj::value made,
            session.send({.method = "POST", .path = "/api/companies", .body = body}));
  session.printer().object(made);
  return {};
}

Result<> update(Session& session, const CompanyOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(company_kind(), options.named));
  bj::object body;
  set_text(body, "name", options.name);
  set_nullable(body, "description", options.description);
  set_text(body, "status", options.status);
  if (options.environment) {
    body["defaultEnvironmentId"] = nullptr;
    if (!options.environment->empty()) {
      BERTH_TRY(body["defaultEnvironmentId"],
                session.find_id(environment_kind(), *options.environment));
    }
  }
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  BERTH_TRY(const bj::value changed,
            session.send({.method = "PATCH", .path = "/api/companies/" + id, .body = body}));
  session.printer().object(changed);
  return {};
}

}  // namespace

void add_company_commands(CommandTree& tree) {
  CLI::App& group = tree.group("company", "companies: the borders of what anyone can see");
  add_list(tree, group, company_kind());
  add_get(tree, group, company_kind(), "berth company get Acme");

  const auto made = std::make_shared<CompanyOptions>();
  CLI::App& creates = tree.leaf(group, "create", "make a company", "berth company create Acme",
                                [made](Session& session) { return create(session, *made); });
  creates.add_option("name", made->name, "its name")->required();
  creates.add_option("--description", made->description, "what it is for")->type_name("TEXT");

  const auto changed = std::make_shared<CompanyOptions>();
  CLI::App& updates = tree.leaf(group, "update", "change a company",
                                "berth company update Acme --description 'rockets'",
                                [changed](Session& session) { return update(session, *changed); });
  updates.add_option("company", changed->named, "its id, name or the start of its id")->required();
  updates.add_option("--name", changed->name, "its new name")->type_name("TEXT");
  updates.add_option("--description", changed->description, "what it is for; '' clears it")
      ->type_name("TEXT");
  add_choice<core::CompanyStatus>(updates, "--status", changed->status, "active or archived");
  updates
      .add_option("--default-env", changed->environment,
                  "where agents work that name no environment; '' clears it")
      ->type_name("ENVIRONMENT");
  add_delete(tree, group, company_kind(), "berth company delete Acme --yes");
  add_company_usage_commands(tree, group);
}

}  // namespace berth::cli
