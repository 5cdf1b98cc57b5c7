#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"

namespace berth::cli {
namespace {

struct SecretOptions {
  std::string named;
  std::string name;
  std::string key;
  std::optional<std::string> description;
  std::string value_file;
  std::int64_t expected_version = 0;
};

void add_value_flag(CLI::App& app, SecretOptions& options) {
  app.add_option("--value-file", options.value_file,
                 "read the value from this file; '-' or none: from standard input or a prompt")
      ->type_name("FILE");
}

void add_name(CLI::App& app, SecretOptions& options) {
  app.add_option("secret", options.named, "its name or key, or its id or an end of it")->required();
}

Result<> create_secret(Context& context, const SecretOptions& options) {
  BERTH_TRY(const std::string path, context.company_path("secrets"));
  BERTH_TRY(const Secret value,
            read_secret(context.console(), options.value_file, "Value of " + options.name));
  bj::object body{{"name", options.name}, {"value", bj::string(value.reveal())}};
  set_text(body, "key", options.key);
  set_nullable(body, "description", options.description);
  BERTH_TRY(const bj::value made,
            context.send({.method = "POST", .path = path, .body = std::move(body)}));
  context.printer().object(made);
  return {};
}

Result<> update_secret(Context& context, const SecretOptions& options) {
  bj::object body;
  set_text(body, "name", options.name);
  set_text(body, "key", options.key);
  set_nullable(body, "description", options.description);
  if (body.empty()) {
    return fail(Errc::bad_request, "nothing to change was given",
                "a new value is given with 'berth secret rotate'");
  }
  BERTH_TRY(const std::string id, context.find_id(secret_kind(), options.named));
  BERTH_TRY(const bj::value changed,
            context.send({.method = "PATCH", .path = "/api/secrets/" + id, .body = body}));
  context.printer().object(changed);
  return {};
}

Result<> rotate(Context& context, const SecretOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(secret_kind(), options.named));
  BERTH_TRY(const Secret value,
            read_secret(context.console(), options.value_file, "New value of " + options.named));
  bj::object body{{"value", bj::string(value.reveal())}};
  if (options.expected_version > 0) body["expectedLatestVersion"] = options.expected_version;
  BERTH_TRY(const bj::value rotated, context.send({.method = "POST",
                                                   .path = "/api/secrets/" + id + "/rotate",
                                                   .body = std::move(body)}));
  context.printer().object(rotated);
  return {};
}

void add_rotation(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(group, "rotate", "give it a new value",
                            "berth secret rotate db-password < new-password",
                            [options](Context& context) { return rotate(context, *options); });
  add_name(app, *options);
  add_value_flag(app, *options);
  app.add_option("--expected-version", options->expected_version,
                 "rotate only if this is its latest version")
      ->type_name("N");
}

void add_status_change(CommandTree& tree, CLI::App& group, const std::string& name,
                       const std::string& says, const std::string& status) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(
      group, name, says, "berth secret " + name + " db-password",
      [options, status](Context& context) -> Result<> {
        BERTH_TRY(const std::string id, context.find_id(secret_kind(), options->named));
        BERTH_TRY(const bj::value changed, context.send({.method = "PATCH",
                                                         .path = "/api/secrets/" + id,
                                                         .body = bj::object{{"status", status}}}));
        context.printer().object(changed);
        return {};
      });
  add_name(app, *options);
}

void add_events(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(
      group, "events", "who read it", "berth secret events db-password",
      [options](Context& context) -> Result<> {
        BERTH_TRY(const std::string id, context.find_id(secret_kind(), options->named));
        BERTH_TRY(const bj::array rows, context.list("/api/secrets/" + id + "/access-events"));
        context.printer().list(rows, {{"WHEN", "createdAt", Shown::moment},
                                      {"OUTCOME", "outcome", Shown::state},
                                      {"CONSUMER", "consumerType"},
                                      {"ID", "consumerId"},
                                      {"FIELD", "configPath"},
                                      {"VERSION", "secretVersion"}});
        return {};
      });
  add_name(app, *options);
}

Result<> versions(Context& context, const SecretOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(secret_kind(), options.named));
  BERTH_TRY(const bj::value rows, context.get("/api/secrets/" + id + "/versions"));
  if (!rows.is_array()) {
    context.printer().object(rows);
    return {};
  }
  context.printer().list(rows.get_array(), {{"VERSION", "number"},
                                            {"STATUS", "status", Shown::state},
                                            {"SEALED WITH", "keyId"},
                                            {"CREATED", "createdAt", Shown::moment}});
  return {};
}

void add_versions(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(group, "versions", "list its versions (values are never shown)",
                            "berth secret versions db-password",
                            [options](Context& context) { return versions(context, *options); });
  add_name(app, *options);
}

Result<> secret_usage(Context& context, const SecretOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(secret_kind(), options.named));
  BERTH_TRY(const bj::value view, context.get("/api/secrets/" + id + "/usage"));
  const auto bindings = peek<bj::array>(view, "bindings");
  if (context.printer().look() == Look::json || !bindings) {
    context.printer().object(view);
    return {};
  }
  context.printer().list(*bindings, {{"TARGET", "targetType"},
                                     {"NAME", "target/label"},
                                     {"ID", "targetId"},
                                     {"FIELD", "configPath"},
                                     {"VERSION", "versionSelector"}});
  return {};
}

void add_usage(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app =
      tree.leaf(group, "usage", "what reads it", "berth secret usage db-password",
                [options](Context& context) { return secret_usage(context, *options); });
  add_name(app, *options);
}

void add_rekey(CommandTree& tree, CLI::App& group) {
  tree.leaf(group, "rekey", "seal every secret anew under a new master key",
            "berth secret rekey --yes", [](Context& context) -> Result<> {
              BERTH_DO(confirm(context.console(),
                               "Seal all secrets of this server under a new master key?",
                               context.flags().yes));
              BERTH_TRY(const bj::value done,
                        context.send({.method = "POST", .path = "/api/instance/rekey"}));
              context.printer().object(done);
              context.printer().note(
                  "back up the new master key file: older copies open nothing any more");
              return {};
            });
}

}  // namespace

void add_secret_commands(CommandTree& tree) {
  CLI::App& group = tree.group("secret", "secrets: sealed, versioned values");
  add_list(tree, group, secret_kind());
  add_get(tree, group, secret_kind(), "berth secret get db-password");

  const auto made = std::make_shared<SecretOptions>();
  CLI::App& creates =
      tree.leaf(group, "create", "make a secret", "pass show db | berth secret create db-password",
                [made](Context& context) { return create_secret(context, *made); });
  creates.add_option("name", made->name, "its name")->required();
  creates.add_option("--key", made->key, "the key that agents use; else made from the name")
      ->type_name("KEY");
  creates.add_option("--description", made->description, "what it is for")->type_name("TEXT");
  add_value_flag(creates, *made);

  const auto changed = std::make_shared<SecretOptions>();
  CLI::App& updates =
      tree.leaf(group, "update", "change its name, key or description",
                "berth secret update db-password --description 'staging'",
                [changed](Context& context) { return update_secret(context, *changed); });
  add_name(updates, *changed);
  updates.add_option("--name", changed->name, "its new name")->type_name("TEXT");
  updates.add_option("--key", changed->key, "its new key")->type_name("KEY");
  updates.add_option("--description", changed->description, "what it is for; '' clears it")
      ->type_name("TEXT");

  add_delete(tree, group, secret_kind(), "berth secret delete db-password --yes");
  add_rotation(tree, group);
  add_usage(tree, group);
  add_events(tree, group);
  add_versions(tree, group);
  add_status_change(tree, group, "disable", "refuse every read of it", "disabled");
  add_status_change(tree, group, "enable", "let it be read again", "active");
  add_rekey(tree, group);
}

}  // namespace berth::cli
