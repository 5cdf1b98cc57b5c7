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

Result<> create(Session& session, const SecretOptions& options) {
  BERTH_TRY(const std::string path, session.company_path("secrets"));
  BERTH_TRY(const Secret value,
            read_secret(session.console(), options.value_file, "Value of " + options.name));
  bj::object body{{"name", options.name}, {"value", bj::string(value.reveal())}};
  set_text(body, "key", options.key);
  set_nullable(body, "description", options.description);
  BERTH_TRY(const bj::value made,
            session.send({.method = "POST", .path = path, .body = std::move(body)}));
  session.printer().object(made);
  return {};
}

Result<> update(Session& session, const SecretOptions& options) {
  bj::object body;
  set_text(body, "name", options.name);
  set_text(body, "key", options.key);
  set_nullable(body, "description", options.description);
  if (body.empty()) {
    return fail(Errc::bad_request, "nothing to change was given",
                "a new value is given with 'berth secret rotate'");
  }
  BERTH_TRY(const std::string id, session.find_id(secret_kind(), options.named));
  BERTH_TRY(const bj::value changed,
            session.send({.method = "PATCH", .path = "/api/secrets/" + id, .body = body}));
  session.printer().object(changed);
  return {};
}

Result<> rotate(Session& session, const SecretOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(secret_kind(), options.named));
  BERTH_TRY(const Secret value,
            read_secret(session.console(), options.value_file, "New value of " + options.named));
  bj::object body{{"value", bj::string(value.reveal())}};
  if (options.expected_version > 0) body["expectedLatestVersion"] = options.expected_version;
  BERTH_TRY(const bj::value rotated, session.send({.method = "POST",
                                                   .path = "/api/secrets/" + id + "/rotate",
                                                   .body = std::move(body)}));
  session.printer().object(rotated);
  return {};
}

void add_rotation(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(group, "rotate", "give it a new value",
                            "berth secret rotate db-password < new-password",
                            [options](Session& session) { return rotate(session, *options); });
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
      [options, status](Session& session) -> Result<> {
        BERTH_TRY(const std::string id, session.find_id(secret_kind(), options->named));
        BERTH_TRY(const bj::value changed, session.send({.method = "PATCH",
                                                         .path = "/api/secrets/" + id,
                                                         .body = bj::object{{"status", status}}}));
        session.printer().object(changed);
        return {};
      });
  add_name(app, *options);
}

void add_events(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(
      group, "events", "who read it", "berth secret events db-password",
      [options](Session& session) -> Result<> {
        BERTH_TRY(const std::string id, session.find_id(secret_kind(), options->named));
        BERTH_TRY(const bj::array rows, session.list("/api/secrets/" + id + "/access-events"));
        session.printer().list(rows, {{"WHEN", "createdAt", Shown::moment},
                                      {"OUTCOME", "outcome", Shown::state},
                                      {"CONSUMER", "consumerType"},
                                      {"ID", "consumerId"},
                                      {"FIELD", "configPath"},
                                      {"VERSION", "secretVersion"}});
        return {};
      });
  add_name(app, *options);
}

Result<> versions(Session& session, const SecretOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(secret_kind(), options.named));
  BERTH_TRY(const bj::value rows, session.get("/api/secrets/" + id + "/versions"));
  if (!rows.is_array()) {
    session.printer().object(rows);
    return {};
  }
  session.printer().list(rows.get_array(), {{"VERSION", "number"},
                                            {"STATUS", "status", Shown::state},
                                            {"SEALED WITH", "keyId"},
                                            {"CREATED", "createdAt", Shown::moment}});
  return {};
}

void add_versions(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(group, "versions", "its values, without the values",
                            "berth secret versions db-password",
                            [options](Session& session) { return versions(session, *options); });
  add_name(app, *options);
}

Result<> usage(Session& session, const SecretOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(secret_kind(), options.named));
  BERTH_TRY(const bj::value view, session.get("/api/secrets/" + id + "/usage"));
  const bj::value* bindings =
      view.is_object() ? view.get_object().if_contains("bindings") : nullptr;
  if (session.printer().look() == Look::json || bindings == nullptr || !bindings->is_array()) {
    session.printer().object(view);
    return {};
  }
  session.printer().list(bindings->get_array(), {{"TARGET", "targetType"},
                                                 {"NAME", "target/label"},
                                                 {"ID", "targetId"},
                                                 {"FIELD", "configPath"},
                                                 {"VERSION", "versionSelector"}});
  return {};
}

void add_usage(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<SecretOptions>();
  CLI::App& app = tree.leaf(group, "usage", "what reads it", "berth secret usage db-password",
                            [options](Session& session) { return usage(session, *options); });
  add_name(app, *options);
}

void add_rekey(CommandTree& tree, CLI::App& group) {
  tree.leaf(group, "rekey", "seal every secret anew under a new master key",
            "berth secret rekey --yes", [](Session& session) -> Result<> {
              BERTH_DO(confirm(session.console(),
                               "Seal all secrets of this server under a new master key?",
                               session.flags().yes));
              BERTH_TRY(const bj::value done,
                        session.send({.method = "POST", .path = "/api/instance/rekey"}));
              session.printer().object(done);
              session.printer().note(
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
                [made](Session& session) { return create(session, *made); });
  creates.add_option("name", made->name, "its name")->required();
  creates.add_option("--key", made->key, "the key that agents use; else made from the name")
      ->type_name("KEY");
  creates.add_option("--description", made->description, "what it is for")->type_name("TEXT");
  add_value_flag(creates, *made);

  const auto changed = std::make_shared<SecretOptions>();
  CLI::App& updates = tree.leaf(group, "update", "change its name, key or description",
                                "berth secret update db-password --description 'staging'",
                                [changed](Session& session) { return update(session, *changed); });
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
  add_status_change(tree, group, "disable", "let nobody read it", "disabled");
  add_status_change(tree, group, "enable", "let it be read again", "active");
  add_rekey(tree, group);
}

}  // namespace berth::cli
