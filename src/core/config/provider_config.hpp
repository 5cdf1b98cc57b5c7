#pragma once

#include "core/config/config_schema.hpp"
#include "core/config/environment_config.hpp"

#include <map>

// Configs that a plugin describes by a schema, on their way between a caller, the store and the
// plugin. Secrets are told by the schema when a config comes in; from then on by their references.
namespace berth::core {

// The config as the plugin is to judge it: references to secrets as bare ids, blank secrets gone,
// defaults filled in, and held against the schema. `unprocessable`, with pointers below `at`. The
// fields that Berth itself knows (reuseLease, timeoutMs, ...) pass where the schema has none.
Result<bj::object> apply_schema(const ConfigSchema& schema, bj::object config, std::string_view at);

// The config in its stored shape. `part` is where in it the schema applies: empty for all of it.
// What stands at a secret's place becomes a reference when it is an id, and a value to seal when it
// is not.
ConfigForStore take_secrets(const ConfigSchema& schema, bj::object config, const ConfigPath& part);

// The references that a config spells out, at any depth.
std::vector<BoundRef> refs_in(const bj::object& config);
// A stored config has the bare ids of its secrets; with them spelled out, whoever holds it needs
// neither the schema nor the bindings to know where they are.
bj::object spell_out_refs(bj::object config, const std::vector<BoundRef>& refs);
// For one call: each value in its place.
bj::object with_secrets(bj::object config, const std::map<std::string, Secret>& values);

}  // namespace berth::core
