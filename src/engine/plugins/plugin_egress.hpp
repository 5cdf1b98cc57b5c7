#pragma once

#include "engine/plugins/plugins.hpp"

namespace berth::engine {

// The rules that the way out of a plugin's worker gets besides those that every plugin has.
std::vector<std::string> egress_rules(const std::optional<core::PluginEgress>& egress,
                                      const plugins::WayOut* way_out);

PluginIsolation isolation_of(const plugins::PluginStatus& status);

}  // namespace berth::engine
