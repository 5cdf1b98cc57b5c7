#pragma once

#include "core/config/config_schema.hpp"
#include "core/config/environment_config.hpp"

#include <map>

// Configs that a plugin describes by a schema, on their way between a caller, the store and the
// plugin. For an incoming config, the schema shows which fields are secrets; afterwards, the
// references do.
namespace berth::core {

// The config for the plugin to validate: secret references as bare ids, blank secrets removed,
// defaults filled in, and checked against the schema. `unprocessable`, with pointers below `at`.
// Fields that Berth itself knows (reuseLease, timeoutMs, ...) are accepted when the schema lacks
// them.
Result<bj::object> apply_schema(const ConfigSchema& schema, bj::object config, std::string_view at);

// The config in stored form. `part` is the path where the schema applies; empty for all of it. The
// value at a secret's path becomes a reference if it is an id, otherwise a value to seal.
ConfigForStore take_secrets(const ConfigSchema& schema, bj::object config, const ConfigPath& part);

// The explicit secret references in a config, at any depth.
std::vector<BoundRef> refs_in(const bj::object& config);
// A stored config has bare secret ids. This expands them, so that the holder needs neither the
// schema nor the bindings to find them.
bj::object spell_out_refs(bj::object config, const std::vector<BoundRef>& refs);
// For one call: each secret value in its place.
bj::object with_secrets(bj::object config, const std::map<std::string, Secret>& values);

}  // namespace berth::core
