#include "core/rows/plugin.hpp"

namespace berth::core {
namespace {

using P = PluginState;
using PE = PluginEvent;
constexpr Step<P, PE> plugin_table[] = {
    {P::installed, PE::activated, P::ready},
    {P::installed, PE::failed, P::error},
    {P::installed, PE::uninstalled, P::uninstalled},
    {P::ready, PE::activated, P::ready},  // an upgrade without new capabilities, or a restart
    {P::ready, PE::disabled, P::disabled},
    {P::ready, PE::failed, P::error},
    {P::ready, PE::review_needed, P::upgrade_pending},
    {P::ready, PE::uninstalled, P::uninstalled},
    {P::disabled, PE::activated, P::ready},
    {P::disabled, PE::uninstalled, P::uninstalled},
    {P::error, PE::activated, P::ready},
    {P::error, PE::uninstalled, P::uninstalled},
    {P::upgrade_pending, PE::activated, P::ready},
    {P::upgrade_pending, PE::failed, P::error},
    {P::upgrade_pending, PE::uninstalled, P::uninstalled},
    {P::uninstalled, PE::installed_again, P::installed},
};

}  // namespace

std::span<const Step<PluginState, PluginEvent>> plugin_steps() {
  return plugin_table;
}

Result<PluginState> advance(PluginState from, PluginEvent on) {
  const auto fits = [&](const auto& step) { return step.from == from && step.on == on; };
  const auto* const step = std::ranges::find_if(plugin_table, fits);
  if (step != std::end(plugin_table)) return step->to;
  return fail(Errc::conflict,
              std::string{name_of(on)} + " does not follow " + std::string{name_of(from)});
}

}  // namespace berth::core
