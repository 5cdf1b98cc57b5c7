#include "cli/commands/common.hpp"

namespace berth::cli {
namespace {

struct SettingsOptions {
  std::optional<std::string> environment;
  std::vector<std::string> set;
};

Result<> change(Session& session, const SettingsOptions& options) {
  bj::object body;
  BERTH_DO(lay_over(body, options.set, "KEY=VALUE"));
  if (options.environment) {
    body["defaultEnvironmentId"] = nullptr;
    if (!options.environment->empty()) {
      BERTH_TRY(body["defaultEnvironmentId"],
                session.find_id(environment_kind(), *options.environment));
    }
  }
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  BERTH_TRY(const bj::value changed,
            session.send({.method = "PATCH", .path = "/api/instance/settings", .body = body}));
  session.printer().object(changed);
  return {};
}

}  // namespace

void add_settings_commands(CommandTree& tree) {
  CLI::App& group = tree.group("settings", "settings that the server keeps");
  tree.leaf(group, "get", "show them", "berth settings get", [](Session& session) -> Result<> {
    BERTH_TRY(const bj::value settings, session.get("/api/instance/settings"));
    session.printer().object(settings);
    return {};
  });
  const auto options = std::make_shared<SettingsOptions>();
  CLI::App& sets = tree.leaf(group, "set", "change them", "berth settings set --default-env Local",
                             [options](Session& session) { return change(session, *options); });
  sets.add_option("pairs", options->set, "settings by their wire names")->type_name("KEY=VALUE");
  sets.add_option("--default-env", options->environment,
                  "where agents work that name no environment; '' clears it")
      ->type_name("ENVIRONMENT");
}

}  // namespace berth::cli
