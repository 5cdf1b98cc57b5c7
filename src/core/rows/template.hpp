#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"

namespace berth::core {

// A template's role in its environment. One is active: new sandboxes start from it.
BOOST_DEFINE_ENUM_CLASS(TemplateRole, active, superseded, revoked)

// The config field that takes the provider's reference, and the fields that are then removed.
struct TemplateBinding {
  std::string field = {};
  std::vector<std::string> unset_fields = {};

  friend bool operator==(const TemplateBinding&, const TemplateBinding&) = default;
};
BOOST_DESCRIBE_STRUCT(TemplateBinding, (), (field, unset_fields))

// A sandbox at one moment, from which others start. Like a sandbox, it may outlive its environment
// and lease, so this row holds everything that its deletion needs.
struct Template {
  TemplateId id;  // also the key given to the provider, so that a retry finds it
  CompanyId company_id;
  std::string name;  // unique within a company
  std::optional<EnvironmentId> environment_id = {};
  std::optional<TemplateRole> role = {};  // absent: not a custom image of an environment
  std::string provider = {};
  TemplateKind kind = TemplateKind::unknown;
  std::optional<std::string> template_ref = {};  // absent until the provider has responded
  TemplateBinding binding = {};
  std::optional<TemplateId> source_template_id = {};  // what its sandbox had started from
  std::optional<LeaseId> source_lease_id = {};
  std::optional<std::string> source_config_fingerprint = {};
  // The environment's config when it was captured or relinked: secret ids, never values.
  std::optional<bj::object> source_config = {};
  std::optional<NodeId> node_id = {};  // the server that captures, keeps or deletes it
  bool expendable = false;             // deleted automatically when nothing uses it
  TemplateState status = TemplateState::capturing;
  bj::object config = {};    // the provider's, at capture: secret ids, never values
  bj::object metadata = {};  // from the provider: bytes, entries, depth, ...
  std::optional<std::string> failure_reason = {};
  std::int64_t attempts = 0;                 // deletion attempts
  std::optional<Time> next_attempt_at = {};  // when the sweeper acts; absent: never on its own
  std::optional<Time> captured_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(Template, (),
                      (id, company_id, name, environment_id, role, provider, kind, template_ref,
                       binding, source_template_id, source_lease_id, source_config_fingerprint,
                       source_config, node_id, expendable, status, config, metadata, failure_reason,
                       attempts, next_attempt_at, captured_at, created_at, updated_at))

// The config for creating a sandbox from the template.
inline bj::object bound_config(bj::object config, const Template& from) {
  for (const std::string& field : from.binding.unset_fields) config.erase(field);
  if (from.template_ref) config[from.binding.field] = *from.template_ref;
  return config;
}

}  // namespace berth::core
