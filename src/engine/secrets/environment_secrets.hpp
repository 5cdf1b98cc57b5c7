#pragma once

#include "core/config/environment_config.hpp"
#include "core/rows/environment.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/services.hpp"

#include <map>

// The secrets of an environment: those its config names, and those that were made for its fields.
namespace berth::engine {

// Turns every raw value in the config into a secret that the environment owns, and puts the
// references in.
Result<> store_config_values(store::Session& session, Services& services, const core::Call& call,
                             const core::Environment& environment, core::ConfigForStore& config);

// Which part of a target's bindings a save replaces.
enum class BindingPart { config, env_vars };

// Writes the bindings of one part, all or none. secret_missing (422) when a reference names no
// secret of the company.
Result<> bind_refs(store::Session& session, const Services& services,
                   const core::CompanyId& company, core::SecretTarget target,
                   const std::string& target_id, BindingPart part,
                   const std::vector<core::BoundRef>& refs);

// The config as a lease keeps it: with each reference to a secret spelled out, so that neither the
// environment nor the schema of a plugin is asked where they are.
Result<bj::object> spelled_out(store::Session& session, const core::EnvironmentId& environment,
                               bj::object config);

// What a place says of itself, on its way to a row, a report or a caller: no secret of the lease is
// in it.
std::string without_secrets(std::string_view text, const std::map<std::string, Secret>& secrets);
Error without_secrets(Error error, const std::map<std::string, Secret>& secrets);

// Removes the secrets that were made for this environment and that nothing names any more. One that
// somebody else has bound meanwhile is kept and owned by nobody; one that an unfinished lease was
// made with is kept until that lease has been given back.
Result<> drop_unused_owned(store::Session& session, Services& services, const core::Call& call,
                           const core::EnvironmentId& environment);

}  // namespace berth::engine
