#pragma once

#include "engine/plugins/plugins.hpp"

namespace berth::engine {

// The egress rules of a plugin's worker, in addition to those of every plugin.
std::vector<std::string> egress_rules(const std::optional<core::PluginEgress>& egress,
                                      const plugins::WayOut* way_out);

PluginIsolation isolation_of(const plugins::PluginStatus& status);

}  // namespace berth::engine
