#include "cli/commands/common.hpp"

namespace berth::cli {
namespace {

Result<> change_settings(Context& context, const std::vector<std::string>& pairs) {
  bj::object body;
  BERTH_DO(lay_over(body, pairs, "KEY=VALUE"));
  BERTH_TRY(const bj::value changed,
            context.send({.method = "PATCH", .path = "/api/instance/settings", .body = body}));
  context.printer().object(changed);
  return {};
}

}  // namespace

void add_settings_commands(CommandTree& tree) {
  CLI::App& group = tree.group("settings", "settings that the server keeps");
  tree.leaf(group, "get", "show them", "berth settings get", [](Context& context) -> Result<> {
    BERTH_TRY(const bj::value settings, context.get("/api/instance/settings"));
    context.printer().object(settings);
    return {};
  });
  const auto pairs = std::make_shared<std::vector<std::string>>();
  CLI::App& sets =
      tree.leaf(group, "set", "change them", "berth settings set strictSecrets=true",
                [pairs](Context& context) { return change_settings(context, *pairs); });
  sets.add_option("settings", *pairs, "settings as 'berth settings get --json' names them")
      ->type_name("KEY=VALUE")
      ->required();
}

}  // namespace berth::cli
