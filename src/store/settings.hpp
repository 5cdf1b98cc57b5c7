#pragma once

#include "base/json.hpp"
#include "store/mapping.hpp"

namespace berth::store {

// The instance's settings: one JSON document per name, each with its version.
Result<std::optional<Stored<bj::object>>> find_setting(Session& session, const std::string& name);
// `seen` = 0 inserts. `conflict` when the document changed since it was read.
Result<> save_setting(Session& session, const std::string& name, const bj::object& document,
                      std::int64_t seen, Time now);

}  // namespace berth::store
