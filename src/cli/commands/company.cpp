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

Result<> create_company(Context& context, const CompanyOptions& options) {
  bj::object body{{"name", options.name}};
  set_nullable(body, "description", options.description);
  BERTH_TRY(const bj::value made,
            context.send({.method = "POST", .path = "/api/companies", .body = body}));
  context.printer().object(made);
  return {};
}

Result<> update_company(Context& context, const CompanyOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(company_kind(), options.named));
  bj::object body;
  set_text(body, "name", options.name);
  set_nullable(body, "description", options.description);
  set_text(body, "status", options.status);
  if (options.environment) {
    body["defaultEnvironmentId"] = nullptr;
    if (!options.environment->empty()) {
      BERTH_TRY(body["defaultEnvironmentId"],
                context.find_id(environment_kind(), *options.environment));
    }
  }
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  BERTH_TRY(const bj::value changed,
            context.send({.method = "PATCH", .path = "/api/companies/" + id, .body = body}));
  context.printer().object(changed);
  return {};
}

struct AllowanceOptions {
  std::string named;
  std::vector<std::string> what;
};

// The name that users write, and the API field.
struct AllowanceWord {
  std::string_view word;
  std::string_view field;
};
constexpr AllowanceWord allowance_words[] = {{"local", "local"},
                                             {"host-network", "hostNetwork"},
                                             {"private-egress", "privateEgress"},
                                             {"private-ssh", "privateSsh"},
                                             {"weak-sandbox", "weakSandbox"}};

std::string check_allowance(const std::string& given) {
  const bool is_known =
      std::ranges::any_of(allowance_words, [&](const auto& each) { return each.word == given; });
  return is_known ? std::string{}
                  : "'" + given +
                        "' is not one of local, host-network, private-egress, private-ssh, "
                        "weak-sandbox";
}

enum class Verdict { allow, forbid };

Result<> decide(Context& context, const AllowanceOptions& options, Verdict verdict) {
  BERTH_TRY(const std::string id, context.find_id(company_kind(), options.named));
  bj::object body;
  for (const std::string& what : options.what) {
    const auto* const found =
        std::ranges::find(allowance_words, std::string_view{what}, &AllowanceWord::word);
    body[found->field] = verdict == Verdict::allow;
  }
  BERTH_TRY(const bj::value changed,
            context.send(
                {.method = "PATCH", .path = "/api/companies/" + id + "/allowances", .body = body}));
  context.printer().object(changed);
  return {};
}

void add_decision(CommandTree& tree, CLI::App& group, Verdict verdict) {
  const bool allows = verdict == Verdict::allow;
  const std::string name = allows ? "allow" : "forbid";
  const auto options = std::make_shared<AllowanceOptions>();
  CLI::App& app = tree.leaf(
      group, name,
      allows ? "let a company use this machine without a wall (instance administrators)"
             : "keep a company behind the walls of sandboxes (instance administrators)",
      "berth company " + name + " Acme local",
      [options, verdict](Context& context) { return decide(context, *options, verdict); });
  app.add_option("company", options->named, "its name, or its id or an end of it")->required();
  app.add_option("what", options->what,
                 "local: environments without a sandbox; host-network: sandboxes in the network of "
                 "the machine; private-egress: ways out to addresses that are not public; "
                 "private-ssh: SSH hosts at such addresses; weak-sandbox: sandboxes with nested "
                 "user namespaces or of isolation minimal")
      ->required()
      ->type_name("local|host-network|private-egress|private-ssh|weak-sandbox")
      ->check(check_allowance);
}

}  // namespace

void add_company_commands(CommandTree& tree) {
  CLI::App& group = tree.group("company", "companies: the borders of what anyone can see");
  add_list(tree, group, company_kind());
  add_get(tree, group, company_kind(), "berth company get Acme");

  const auto made = std::make_shared<CompanyOptions>();
  CLI::App& creates =
      tree.leaf(group, "create", "make a company", "berth company create Acme",
                [made](Context& context) { return create_company(context, *made); });
  creates.add_option("name", made->name, "its name")->required();
  creates.add_option("--description", made->description, "what it is for")->type_name("TEXT");

  const auto changed = std::make_shared<CompanyOptions>();
  CLI::App& updates = tree.leaf(
      group, "update", "change a company", "berth company update Acme --description 'rockets'",
      [changed](Context& context) { return update_company(context, *changed); });
  updates.add_option("company", changed->named, "its name, or its id or an end of it")->required();
  updates.add_option("--name", changed->name, "its new name")->type_name("TEXT");
  updates.add_option("--description", changed->description, "what it is for; '' clears it")
      ->type_name("TEXT");
  add_choice<core::CompanyStatus>(updates, "--status", changed->status, "active or archived");
  updates
      .add_option("-e,--environment", changed->environment,
                  "where agents work that name no environment; '' clears it")
      ->type_name("ENVIRONMENT");
  add_old_name(updates, "--default-env", changed->environment);
  add_decision(tree, group, Verdict::allow);
  add_decision(tree, group, Verdict::forbid);
  add_delete(tree, group, company_kind(), "berth company delete Acme --yes");
  add_company_usage_commands(tree, group);
}

}  // namespace berth::cli
