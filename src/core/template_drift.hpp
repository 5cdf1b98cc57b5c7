#pragma once

#include "core/rows/template.hpp"

#include <set>

namespace berth::core {

// What a difference between a template's captured config and the current config means for the
// template.
BOOST_DEFINE_ENUM_CLASS(DriftKind,
                        knob_only,          // how sandboxes run: the template is still valid
                        boot_source_drift,  // what they start from
                        unclassified)       // cannot be determined

struct TemplateDrift {
  DriftKind classification = DriftKind::unclassified;
  std::vector<std::string> drifted_paths = {};  // "/config/image"; never a value
};
BOOST_DESCRIBE_STRUCT(TemplateDrift, (), (classification, drifted_paths))

// What an edit of an environment's config did to its active template.
BOOST_DEFINE_ENUM_CLASS(ImageLink,
                        relinked,  // it now belongs to the current config
                        detached)  // sandboxes do not start from it until it is relinked

struct ImageReconciliation {
  ImageLink action = ImageLink::relinked;
  TemplateId template_id;
  DriftKind classification = DriftKind::knob_only;
  std::vector<std::string> drifted_paths = {};
};
BOOST_DESCRIBE_STRUCT(ImageReconciliation, (), (action, template_id, classification, drifted_paths))

// Empty when the config is unchanged. Secret fields do not count, because the account that pays for
// a sandbox does not change what it starts from.
std::optional<TemplateDrift> drift_of(const Template& from, const bj::object& config,
                                      const std::set<std::string>& secret_fields);

// Whether sandboxes of the config still start from the template. If the boot source changed after
// the capture, the template would hide that change.
inline bool still_applies(const std::optional<TemplateDrift>& drift) {
  return !drift || drift->classification == DriftKind::knob_only;
}

}  // namespace berth::core
