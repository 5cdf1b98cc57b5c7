// What a plugin worker's box blocks, and what the worker may reach.
#include "engine/plugins/plugin_egress.hpp"

#include "egress/policy.hpp"

#include <array>

namespace berth::engine {
namespace {

// Networks that are neither on the internet nor this machine.
constexpr std::array private_ranges{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                                    "100.64.0.0/10", "[fc00::/7]"};
constexpr std::size_t rules_max = 200;

}  // namespace

std::vector<std::string> egress_rules(const std::optional<core::PluginEgress>& egress,
                                      const plugins::WayOut* way_out) {
  if (!egress) return {};
  std::vector<std::string> rules = egress->allow;
  if (!egress->kept_private || way_out == nullptr) return rules;
  for (const std::uint16_t port : way_out->ports()) {
    for (const char* range : private_ranges) {
      rules.push_back(range + (":" + std::to_string(port)));
    }
  }
  return rules;
}

PluginIsolation isolation_of(const plugins::PluginStatus& status) {
  PluginIsolation out{.level = std::string{keeper::name_of(status.box.level)},
                      .features = status.box.features,
                      .missing = {}};
  for (const auto& missing : status.box.missing) {
    out.missing.push_back({missing.feature, missing.reason, missing.remedy});
  }
  return out;
}

Task<PluginView> Plugins::set_egress(core::Call call, std::string name,
                                     PluginEgressRequest wanted) {
  BERTH_CO_DO(place());
  if (wanted.allow.size() > rules_max) {
    co_return fail(Errc::validation_failed,
                   "/allow: has " + std::to_string(wanted.allow.size()) + " rules",
                   "give at most " + std::to_string(rules_max));
  }
  BERTH_CO_DO(egress::Policy::parse({.allow = wanted.allow}));
  BERTH_CO_TRY(Row row, co_await find(std::move(name)));
  BERTH_CO_TRY(const Turn turn, take_turn(row.value.plugin_key));
  row.value.egress = core::PluginEgress{.allow = wanted.allow};
  BERTH_CO_TRY(row, co_await services_.store.write([&](store::Session& s) -> Result<Row> {
    return store::update_plugin(s, row, services_.clock.now());
  }));
  plugins::WayOut* const way_out = place_->host.config().way_out;
  if (way_out != nullptr) {
    BERTH_CO_DO(way_out->change(row.value.id, egress_rules(row.value.egress, way_out)));
  }
  // The next worker on this server gets the new rules too.
  place_->host.allow(row.value.id, egress_rules(row.value.egress, way_out));
  BERTH_CO_DO(co_await note(call, row.value.id, "egress_changed"));
  co_return view(call.who, row.value);
}

Task<PluginEgressLog> Plugins::egress(core::Call /*call*/, std::string name, std::int64_t limit) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  const plugins::WayOut* const way_out = place_->host.config().way_out;
  PluginEgressLog out{.allow = egress_rules(row.value.egress, way_out), .entries = {}};
  if (way_out != nullptr) {
    out.entries = way_out->decisions(row.value.id, static_cast<std::size_t>(limit));
  }
  co_return out;
}

}  // namespace berth::engine
