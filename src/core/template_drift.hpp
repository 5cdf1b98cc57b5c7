#pragma once

#include "core/rows/template.hpp"

#include <set>

namespace berth::core {

// What a difference between the config that a template was captured under and the one of today
// means for it.
BOOST_DEFINE_ENUM_CLASS(DriftKind,
                        knob_only,          // how sandboxes run: the template is as good as before
                        boot_source_drift,  // what they start from
                        unclassified)       // nobody can say

struct TemplateDrift {
  DriftKind classification = DriftKind::unclassified;
  std::vector<std::string> drifted_paths = {};  // "/config/image"; never a value
};
BOOST_DESCRIBE_STRUCT(TemplateDrift, (), (classification, drifted_paths))

// What an edit of an environment's config has done to its active template.
BOOST_DEFINE_ENUM_CLASS(ImageLink,
                        relinked,  // it is one of the config of today
                        detached)  // sandboxes do not start from it until it is linked again

struct ImageReconciliation {
  ImageLink action = ImageLink::relinked;
  TemplateId template_id;
  DriftKind classification = DriftKind::knob_only;
  std::vector<std::string> drifted_paths = {};
};
BOOST_DESCRIBE_STRUCT(ImageReconciliation, (), (action, template_id, classification, drifted_paths))

// Nothing when the config is still the same. Fields that hold secrets do not count: who pays for a
// sandbox is not what it starts from.
std::optional<TemplateDrift> drift_of(const Template& from, const bj::object& config,
                                      const std::set<std::string>& secret_fields);

// Whether sandboxes of the config still start from the template. One whose boot source was changed
// after the capture would hide the change.
inline bool still_applies(const std::optional<TemplateDrift>& drift) {
  return !drift || drift->classification == DriftKind::knob_only;
}

}  // namespace berth::core
