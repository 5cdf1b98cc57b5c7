#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/variables.hpp"
#include "cli/print/failure.hpp"
#include "cli/run/page.hpp"
#include "core/config/linux_config.hpp"
#include "core/enums.hpp"

#include "base/files.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t key_bytes_max = 65536;

struct EnvironmentOptions {
  std::string named;
  std::string name;
  std::optional<std::string> description;
  std::string driver;
  std::string status;
  std::string config;
  std::vector<std::string> set;
  VariableFlags variables;
  std::string host;
  std::int64_t port = 0;
  std::string user;
  std::string path;
  std::string key_file;
  std::string known_hosts_file;
  std::string provider;
  std::string if_match;
};

// The flags that spare users from writing JSON, each for one config field.
Result<> add_shorthands(bj::object& config, const EnvironmentOptions& options) {
  set_text(config, "host", options.host);
  if (options.port != 0) config["port"] = options.port;
  set_text(config, "username", options.user);
  set_text(config, "remoteWorkspacePath", options.path);
  set_text(config, "provider", options.provider);
  if (!options.key_file.empty()) {
    BERTH_TRY(config["privateKey"], read_file(options.key_file, key_bytes_max));
  }
  if (!options.known_hosts_file.empty()) {
    BERTH_TRY(config["knownHosts"], read_file(options.known_hosts_file, key_bytes_max));
  }
  return {};
}

Result<bj::object> environment_body(Context& context, const EnvironmentOptions& options) {
  bj::object body;
  set_text(body, "name", options.name);
  set_nullable(body, "description", options.description);
  set_text(body, "driver", options.driver);
  set_text(body, "status", options.status);
  bj::object config;
  if (!options.config.empty()) {
    BERTH_TRY(config, read_object(options.config, "--config"));
  }
  BERTH_DO(add_shorthands(config, options));
  BERTH_DO(lay_over(config, options.set, "--set"));
  if (!config.empty() || !options.config.empty()) body["config"] = std::move(config);
  BERTH_TRY(const std::vector<Variable> given,
            read_variables(options.variables, context.console().variables));
  if (!given.empty()) {
    BERTH_TRY(body["envVars"], variables_in_json(context, given));
  }
  return body;
}

Result<> create_environment(Context& context, const EnvironmentOptions& options) {
  BERTH_TRY(bj::object body, environment_body(context, options));
  // A sandbox is one of this machine unless somebody else is to make it.
  if (options.driver == name_of(core::DriverKind::sandbox)) {
    bj::value& config = body["config"];
    if (!config.is_object()) config.emplace_object();
    config.get_object().emplace("provider", core::linux_provider);
  }
  BERTH_TRY(const std::string path, context.company_path("environments"));
  BERTH_TRY(const bj::value made, context.send({.method = "POST", .path = path, .body = body}));
  context.printer().object(made);
  return {};
}

// The version that is read here is the one that is changed: somebody else's edit in between is
// refused by the server, not overwritten.
Result<> update_environment(Context& context, const EnvironmentOptions& options) {
  BERTH_TRY(bj::object body, environment_body(context, options));
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  BERTH_TRY(const std::string id, context.find_id(environment_kind(), options.named));
  BERTH_TRY(const Client* server, context.client());
  const std::string path = "/api/environments/" + id;
  BERTH_TRY(const Answer seen, server->send({.path = path}));
  std::optional<std::string> version = seen.etag;
  if (!options.if_match.empty()) version = options.if_match;
  if (body.contains("envVars") && seen.body.is_object()) {
    // The server replaces all variables; --var changes one.
    bj::object merged = peek<bj::object>(seen.body, "envVars").value_or(bj::object{});
    for (const auto& [key, value] : body["envVars"].get_object()) merged[key] = value;
    body["envVars"] = std::move(merged);
  }
  Result<Answer> changed =
      server->send({.method = "PATCH", .path = path, .body = body, .if_match = version});
  if (!changed && changed.error().code == Errc::precondition_failed) {
    Error error = std::move(changed).error();
    error.message = "environment " + id + " changed since it was read; nothing was overwritten";
    error.remedy = "look at it with 'berth env get " + id + "' and run the command again";
    return std::unexpected(std::move(error));
  }
  if (!changed) return std::unexpected(std::move(changed).error());
  context.printer().object(changed->body);
  return {};
}

void add_environment_fields(CLI::App& app, EnvironmentOptions& options) {
  app.add_option("--description", options.description, "what it is for; '' clears it")
      ->type_name("TEXT");
  add_choice<core::EnvironmentStatus>(app, "--status", options.status, "archived: no new work");
  app.add_option("--config", options.config, "config of the driver")->type_name("JSON|@FILE");
  app.add_option("--set", options.set,
                 "one field of the config; 'berth env keys DRIVER' lists them")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_variable_flags(app, options.variables);
  app.add_option("--host", options.host, "ssh: the machine")->type_name("HOST");
  app.add_option("--port", options.port, "ssh: its port")
      ->type_name("PORT")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65535}).description(""));
  app.add_option("--user", options.user, "ssh: the account")->type_name("USER");
  app.add_option("--path", options.path, "ssh: folder of the workspace there")->type_name("DIR");
  app.add_option("--key-file", options.key_file, "ssh: private key; it becomes a secret")
      ->type_name("FILE");
  app.add_option("--known-hosts-file", options.known_hosts_file, "ssh: keys of the machine")
      ->type_name("FILE");
  app.add_option("--provider", options.provider, "sandbox: who makes it; linux unless said")
      ->type_name("PROVIDER");
}

void add_view(CommandTree& tree, CLI::App& group, const std::string& name, const std::string& says,
              const std::string& rest) {
  const auto named = std::make_shared<std::string>();
  CLI::App& app =
      tree.leaf(group, name, says, "berth env " + name + " build-host",
                [named, rest](Context& context) -> Result<> {
                  BERTH_TRY(const std::string id, context.find_id(environment_kind(), *named));
                  BERTH_TRY(const bj::value view, context.get("/api/environments/" + id + rest));
                  context.printer().object(view);
                  return {};
                });
  app.add_option("environment", *named, "its name, or its id or an end of it")->required();
}

struct TestOptions {
  std::string named;
  std::string draft;
};

Result<bj::value> probe(Context& context, const TestOptions& options) {
  if (options.draft.empty() == options.named.empty()) {
    return fail(Errc::bad_request, "name one environment, or describe one with --draft",
                "write it as 'berth env test build-host'");
  }
  if (!options.draft.empty()) {
    BERTH_TRY(const bj::object draft, read_object(options.draft, "--draft"));
    BERTH_TRY(const std::string path, context.company_path("environments/probe-config"));
    return context.send({.method = "POST", .path = path, .body = draft});
  }
  BERTH_TRY(const std::string id, context.find_id(environment_kind(), options.named));
  return context.send({.method = "POST", .path = "/api/environments/" + id + "/probe"});
}

Result<> test_environment(Context& context, const TestOptions& options) {
  BERTH_TRY(const bj::value report, probe(context, options));
  if (context.printer().look() == Look::json) {
    context.printer().object(report);
  } else {
    context.printer().text(
        probe_page(report, {.columns = static_cast<std::size_t>(context.console().columns),
                            .colour = context.printer().colour(),
                            .now = context.printer().now()}));
  }
  const bool works = peek<bool>(report, "ok").value_or(false);
  context.end_with(static_cast<int>(works ? ExitCode::ok : ExitCode::failure));
  return {};
}

void add_test(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<TestOptions>();
  CLI::App& app = tree.leaf(
      group, "test", "try whether work can run there, step by step", "berth env test build-host",
      [options](Context& context) { return test_environment(context, *options); });
  app.add_option("environment", options->named, "its name, or its id or an end of it");
  app.add_option("--draft", options->draft, "try one that is not saved: driver and config")
      ->type_name("JSON|@FILE");
}

void add_leases(CommandTree& tree, CLI::App& group) {
  const auto named = std::make_shared<std::string>();
  CLI::App& app = tree.leaf(
      group, "leases", "who holds it, newest first", "berth env leases build-host",
      [named](Context& context) -> Result<> {
        BERTH_TRY(const std::string id, context.find_id(environment_kind(), *named));
        BERTH_TRY(const bj::array rows, context.list("/api/environments/" + id + "/leases"));
        context.printer().list(rows, {{"ID", "id"},
                                      {"STATUS", "status", Shown::state},
                                      {"POLICY", "leasePolicy"},
                                      {"RUN", "heartbeatRunId"},
                                      {"ACQUIRED", "acquiredAt", Shown::moment},
                                      {"RELEASED", "releasedAt", Shown::moment}});
        return {};
      });
  app.add_option("environment", *named, "its name, or its id or an end of it")->required();
}

}  // namespace

void add_environment_commands(CommandTree& tree) {
  CLI::App& group = tree.group("env", "environments: where work runs");
  add_list(tree, group, environment_kind());
  add_get(tree, group, environment_kind(), "berth env get Local");

  const auto made = std::make_shared<EnvironmentOptions>();
  CLI::App& creates =
      tree.leaf(group, "create", "make an environment",
                "berth env create build-host --driver ssh --host 10.0.0.7 --user ci --path /srv/ci "
                "--key-file ~/.ssh/ci",
                [made](Context& context) { return create_environment(context, *made); });
  creates.add_option("name", made->name, "its name")->required();
  add_choice<core::DriverKind>(creates, "--driver", made->driver, "how it is reached")->required();
  add_environment_fields(creates, *made);

  const auto changed = std::make_shared<EnvironmentOptions>();
  CLI::App& updates = tree.leaf(
      group, "update", "change an environment", "berth env update build-host --host 10.0.0.8",
      [changed](Context& context) { return update_environment(context, *changed); });
  updates.add_option("environment", changed->named, "its name, or its id or an end of it")
      ->required();
  updates.add_option("--name", changed->name, "its new name")->type_name("TEXT");
  add_choice<core::DriverKind>(updates, "--driver", changed->driver, "how it is reached");
  updates.add_option("--if-match", changed->if_match, "change only this version of it")
      ->type_name("ETAG");
  add_environment_fields(updates, *changed);

  add_delete(tree, group, environment_kind(), "berth env delete build-host --yes");
  add_view(tree, group, "blast-radius", "what deleting it would break", "/delete-blast-radius");
  add_view(tree, group, "secret-refs", "which secrets it reads", "/secret-refs");
  add_leases(tree, group);
  add_test(tree, group);
  add_setup_commands(tree, group);
  add_key_commands(tree, group);
  tree.leaf(group, "capabilities", "which adapter runs on which driver and provider",
            "berth env capabilities", [](Context& context) -> Result<> {
              BERTH_TRY(const std::string path, context.company_path("environments/capabilities"));
              BERTH_TRY(const bj::value view, context.get(path));
              context.printer().object(view);
              return {};
            });
}

}  // namespace berth::cli
