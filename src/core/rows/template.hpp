#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"

namespace berth::core {

// What a template is to its environment. One is active: new sandboxes start from it.
BOOST_DEFINE_ENUM_CLASS(TemplateRole, active, superseded, revoked)

// Into which field of a config the provider wants its reference, and which fields then go.
struct TemplateBinding {
  std::string field = {};
  std::vector<std::string> unset_fields = {};

  friend bool operator==(const TemplateBinding&, const TemplateBinding&) = default;
};
BOOST_DESCRIBE_STRUCT(TemplateBinding, (), (field, unset_fields))

// A sandbox at one moment, from which others start. Like a sandbox it may outlive the environment
// and the lease that it came from, so all that its deletion needs is on this row.
struct Template {
  TemplateId id;  // also the key that the provider is given, so that a repeated call finds it
  CompanyId company_id;
  std::string name;  // one in a company
  std::optional<EnvironmentId> environment_id = {};
  std::optional<TemplateRole> role = {};  // absent: nobody's custom image
  std::string provider = {};
  TemplateKind kind = TemplateKind::unknown;
  std::optional<std::string> template_ref = {};  // absent until the provider has answered
  TemplateBinding binding = {};
  std::optional<TemplateId> source_template_id = {};  // what its sandbox had started from
  std::optional<LeaseId> source_lease_id = {};
  std::optional<std::string> source_config_fingerprint = {};
  // Of the environment, when it was captured or linked again: secret ids, never values.
  std::optional<bj::object> source_config = {};
  std::optional<NodeId> node_id = {};  // the server that captures, keeps or deletes it
  bool expendable = false;             // goes by itself when nothing stands on it any more
  TemplateState status = TemplateState::capturing;
  bj::object config = {};    // of the provider as it was: secret ids, never values
  bj::object metadata = {};  // what the provider told: bytes, entries, depth, ...
  std::optional<std::string> failure_reason = {};
  std::int64_t attempts = 0;                 // of deletion
  std::optional<Time> next_attempt_at = {};  // when the sweeper looks; absent: not by itself
  std::optional<Time> captured_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(Template, (),
                      (id, company_id, name, environment_id, role, provider, kind, template_ref,
                       binding, source_template_id, source_lease_id, source_config_fingerprint,
                       source_config, node_id, expendable, status, config, metadata, failure_reason,
                       attempts, next_attempt_at, captured_at, created_at, updated_at))

// The config from which a sandbox of the template is made.
inline bj::object bound_config(bj::object config, const Template& from) {
  for (const std::string& field : from.binding.unset_fields) config.erase(field);
  if (from.template_ref) config[from.binding.field] = *from.template_ref;
  return config;
}

}  // namespace berth::core
