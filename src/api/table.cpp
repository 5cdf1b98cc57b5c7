#include "api/table.hpp"

#include "api/tables.hpp"
#include "engine/engine.hpp"

namespace berth::api {

Table::Table(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (const Entry& entry : entries_) {
    const bool is_new = by_name_.emplace(entry.name, &entry).second;
    BERTH_ASSERT(is_new);  // two operations with one name: rename one of them
  }
}

const Entry* Table::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? found->second : nullptr;
}

Table all_operations(engine::Engine& work, const ServerFacts& facts, Examination examination) {
  std::vector<Entry> all;
  const auto add = [&](std::vector<Entry> table) {
    for (Entry& entry : table) all.push_back(std::move(entry));
  };
  add(company_operations(work.companies, work.guards.quotas));
  add(agent_operations(work.agents, work.homes));
  add(environment_operations(work.environments, work.leases));
  add(lease_operations(work.leases));
  add(sandbox_operations(work.leases));
  add(template_operations(work.templates));
  add(snapshot_operations(work.templates, work.snapshots));
  add(image_operations(work.environments, work.templates));
  add(setup_operations(work.environments, work.setup_sessions, work.setup_terminals));
  add(run_operations(work.runs));
  add(plugin_operations(work.plugins));
  add(secret_operations(work.secrets, work.run_secrets));
  add(token_operations(work.tokens));
  add(activity_operations(work.activities));
  add(instance_operations(work.settings, work.secrets, work.node, std::move(examination)));
  add(session_operations(work, facts));
  return Table{std::move(all)};
}

}  // namespace berth::api
