#pragma once

#include "core/access.hpp"
#include "core/rows/template.hpp"
#include "store/sql/mapping.hpp"

// Captured sandboxes. A deleted template is no longer found.
namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Template> = "templates";

struct TemplateFilter {
  std::optional<core::TemplateState> status = {};
  std::optional<core::EnvironmentId> environment_id = {};
};

// Records the intent, before anything is captured. `conflict` for a name that is taken.
Result<> insert_template(Session& session, const core::Template& made);
Result<Stored<core::Template>> find_template(Session& session, const core::Reach& reach,
                                             const core::TemplateId& id);
// Whether a template was deleted without ever being captured: its requester has nothing.
Result<bool> was_never_captured(Session& session, const core::TemplateId& id);
// Another one of the same provider, and of any company, that has this reference there.
Result<std::optional<Stored<core::Template>>> template_with_ref(Session& session,
                                                                const core::Template& other_than,
                                                                const std::string& ref);
// By id or name.
Result<Stored<core::Template>> find_named_template(Session& session, const core::CompanyId& company,
                                                   std::string_view named);
// Ordered by (created_at, id) descending.
Result<Page<core::Template>> list_templates(Session& session, const core::CompanyId& company,
                                            const TemplateFilter& filter, const PageRequest& page);

// The template from which new sandboxes of the environment start.
Result<std::optional<Stored<core::Template>>> active_template(
    Session& session, const core::EnvironmentId& environment);
// The most recently captured one among those that were active before.
Result<std::optional<Stored<core::Template>>> superseded_template(
    Session& session, const core::EnvironmentId& environment);

// What uses a template: "template ...", "sandbox ...", "environment ...". At most ten.
Result<std::vector<std::string>> users_of_template(Session& session, const core::Template& used);

// As for sandboxes: moves to the state that follows; `conflict` when none does or another writer
// was faster.
Result<Stored<core::Template>> move_template(Session& session, Stored<core::Template> row,
                                             core::TemplateEvent event, Time now);
Result<Stored<core::Template>> update_template(Session& session, Stored<core::Template> row,
                                               Time now);

// Makes an expendable template due now, because its user has ended.
Result<> make_due(Session& session, const std::optional<core::TemplateId>& id, Time now);
// Templates for this node's sweeper, the longest overdue first: its own, and those left by fenced
// or pruned nodes.
Result<std::vector<Stored<core::Template>>> due_templates(Session& session,
                                                          const core::NodeId& node, Time now,
                                                          std::int64_t limit);

}  // namespace berth::store
