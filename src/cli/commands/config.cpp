#include "cli/tree.hpp"

namespace berth::cli {
namespace {

Result<> show_config(Context& context) {
  const std::vector<ShownSetting> settings = show(context.config());
  context.printer().list(encode(settings).get_array(),
                         {{"NAME", "name"}, {"VALUE", "value"}, {"FROM", "source"}});
  const auto& file = context.config().file;
  context.printer().note(file ? "read " + *file : "no configuration file was found");
  return {};
}

}  // namespace

void add_config_commands(CommandTree& tree) {
  CLI::App& group = tree.group("config", "the configuration of this program");
  tree.leaf(group, "show", "show each setting and where its value comes from", "berth config show",
            show_config);
}

}  // namespace berth::cli
