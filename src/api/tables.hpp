#pragma once

#include "api/table.hpp"

namespace berth::engine {
class Activities;
class AgentHomes;
class Agents;
class Companies;
class Environments;
class Leases;
class NodeLife;
class Plugins;
class Quotas;
class RunSecrets;
class Runs;
class Secrets;
class Settings;
class SetupSessions;
class SetupTerminals;
class Snapshots;
class Templates;
class Tokens;
}  // namespace berth::engine

// One table per topic, each over the services that it needs.
namespace berth::api {

std::vector<Entry> company_operations(engine::Companies& companies, engine::Quotas& quotas);
std::vector<Entry> agent_operations(engine::Agents& agents, engine::AgentHomes& homes);
std::vector<Entry> token_operations(engine::Tokens& tokens);
std::vector<Entry> instance_operations(engine::Settings& settings, engine::Secrets& secrets,
                                       engine::NodeLife& node, Examination examination);
std::vector<Entry> activity_operations(engine::Activities& activities);
std::vector<Entry> session_operations(engine::Engine& work, const ServerFacts& facts);
std::vector<Entry> environment_operations(engine::Environments& environments,
                                          engine::Leases& leases);
std::vector<Entry> lease_operations(engine::Leases& leases);
std::vector<Entry> sandbox_operations(engine::Leases& leases);
std::vector<Entry> template_operations(engine::Templates& templates);
std::vector<Entry> snapshot_operations(engine::Templates& templates, engine::Snapshots& snapshots);
std::vector<Entry> image_operations(engine::Environments& environments,
                                    engine::Templates& templates);
std::vector<Entry> setup_operations(engine::Environments& environments,
                                    engine::SetupSessions& sessions,
                                    engine::SetupTerminals& terminals);
std::vector<Entry> run_operations(engine::Runs& runs);
std::vector<Entry> plugin_operations(engine::Plugins& plugins);
std::vector<Entry> secret_operations(engine::Secrets& secrets, engine::RunSecrets& run_secrets);

}  // namespace berth::api
