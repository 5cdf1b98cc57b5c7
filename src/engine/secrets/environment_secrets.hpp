#pragma once

#include "core/config/environment_config.hpp"
#include "core/rows/environment.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/services.hpp"

#include <map>

// An environment's secrets: those its config refers to, and those created for its fields.
namespace berth::engine {

// Turns every raw value in the config into a secret that the environment owns, and inserts the
// references.
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

// The config as a lease stores it: each secret reference spelled out, so that neither the
// environment nor a plugin's schema is needed to find them.
Result<bj::object> spelled_out(store::Session& session, const core::EnvironmentId& environment,
                               bj::object config);

// Text from a place, on its way to a row, a report or a caller, with the lease's secrets removed.
std::string without_secrets(std::string_view text, const std::map<std::string, Secret>& secrets);
Error without_secrets(Error error, const std::map<std::string, Secret>& secrets);

// Removes the secrets that were created for this environment and are no longer referenced. One that
// is bound elsewhere by now is kept, without an owner. One that an unfinished lease was created
// with is kept until that lease is released.
Result<> drop_unused_owned(store::Session& session, Services& services, const core::Call& call,
                           const core::EnvironmentId& environment);

}  // namespace berth::engine
