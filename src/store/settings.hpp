#pragma once

#include "base/json/json.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

// The instance's settings: one JSON document per name, each with its version.
Result<std::optional<Stored<bj::object>>> find_setting(Session& session, const std::string& name);
// `seen` = 0 inserts. `conflict` when the document changed since it was read.
Result<> save_setting(Session& session, const std::string& name, const bj::object& document,
                      std::int64_t seen, Time now);

// A confidential setting: its document is sealed by the vault. Stored under a separate name, so
// that a master key rotation finds all of them.
struct SealedSetting {
  std::string key_id;
  std::string material;
};
BOOST_DESCRIBE_STRUCT(SealedSetting, (), (key_id, material))

Result<std::optional<Stored<SealedSetting>>> find_sealed_setting(Session& session,
                                                                 const std::string& name);
Result<> save_sealed_setting(Session& session, const std::string& name,
                             const SealedSetting& setting, std::int64_t seen, Time now);
// All sealed settings, by the names that the functions above take.
Result<std::map<std::string, Stored<SealedSetting>>> list_sealed_settings(Session& session);

}  // namespace berth::store
