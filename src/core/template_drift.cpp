#include "core/template_drift.hpp"

#include "core/config/config_path.hpp"
#include "core/config/linux_config.hpp"
#include "core/fingerprint.hpp"

#include <algorithm>
#include <array>

namespace berth::core {
namespace {

// Fields that any provider's config may have and that the server itself reads.
constexpr std::array<std::string_view, 4> own_knobs{"timeoutMs", "reuseLease", "streamRunLogs",
                                                    "archiveOnRelease"};

// The fields of our own provider that define what a sandbox starts from; all its other fields are
// knobs.
constexpr std::array<std::string_view, 2> linux_sources{"image", "template"};

DriftKind drift_kind(const Template& from, std::string_view field) {
  const bool is_bound =
      field == from.binding.field ||
      std::ranges::find(from.binding.unset_fields, field) != from.binding.unset_fields.end();
  if (field == "provider" || is_bound) return DriftKind::boot_source_drift;
  if (from.provider == linux_provider) {
    const bool is_source = std::ranges::find(linux_sources, field) != linux_sources.end();
    return is_source ? DriftKind::boot_source_drift : DriftKind::knob_only;
  }
  const bool is_knob = std::ranges::find(own_knobs, field) != own_knobs.end();
  return is_knob ? DriftKind::knob_only : DriftKind::unclassified;
}

// Absent and null are equal.
bool differs(const bj::object& before, const bj::object& after, std::string_view field) {
  const auto text_of = [field](const bj::object& config) {
    const auto found = config.find(field);
    return found == config.end() ? canonical_json(nullptr) : canonical_json(found->value());
  };
  return text_of(before) != text_of(after);
}

DriftKind worse(DriftKind one, DriftKind other) {
  for (const DriftKind kind : {DriftKind::boot_source_drift, DriftKind::unclassified}) {
    if (one == kind || other == kind) return kind;
  }
  return DriftKind::knob_only;
}

}  // namespace

std::optional<TemplateDrift> drift_of(const Template& from, const bj::object& config,
                                      const std::set<std::string>& secret_fields) {
  if (!from.source_config) return TemplateDrift{};
  std::set<std::string> fields;
  for (const auto& [key, value] : *from.source_config) fields.emplace(key);
  for (const auto& [key, value] : config) fields.emplace(key);
  TemplateDrift drift{.classification = DriftKind::knob_only};
  for (const std::string& field : fields) {
    if (secret_fields.contains(field) || !differs(*from.source_config, config, field)) continue;
    drift.classification = worse(drift.classification, drift_kind(from, field));
    drift.drifted_paths.push_back("/config" + ConfigPath{{field}}.pointer());
  }
  if (drift.drifted_paths.empty()) return std::nullopt;
  return drift;
}

}  // namespace berth::core
