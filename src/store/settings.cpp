#include "store/settings.hpp"

namespace berth::store {
namespace {

const std::string sealed_prefix = "sealed.";

}  // namespace

Result<std::optional<Stored<bj::object>>> find_setting(Session& session, const std::string& name) {
  BERTH_TRY(const Rows found,
            query(session, "select document, version from settings where name = $1", name));
  if (found.rows.empty()) return std::nullopt;
  const std::vector<Value>& row = found.rows.front();
  Stored<bj::object> setting;
  BERTH_TRY(setting.value, from_value<bj::object>(row.at(0), "settings", "document"));
  BERTH_TRY(setting.version, from_value<std::int64_t>(row.at(1), "settings", "version"));
  return setting;
}

Result<> save_setting(Session& session, const std::string& name, const bj::object& document,
                      std::int64_t seen, Time now) {
  constexpr std::string_view insert_sql = R"sql(
    insert into settings (name, document, updated_at, version) values ($1, $2, $3, 1)
    on conflict (name) do nothing
  )sql";
  constexpr std::string_view update_sql = R"sql(
    update settings set document = $2, updated_at = $3, version = version + 1
    where name = $1 and version = $4
  )sql";
  BERTH_TRY(const Rows saved, seen == 0 ? query(session, insert_sql, name, document, now)
                                        : query(session, update_sql, name, document, now, seen));
  if (saved.changed == 1) return {};
  return fail(Errc::conflict, "The settings '" + name + "' changed since they were read",
              "read them again and repeat the change");
}

Result<std::optional<Stored<SealedSetting>>> find_sealed_setting(Session& session,
                                                                 const std::string& name) {
  BERTH_TRY(const auto found, find_setting(session, sealed_prefix + name));
  if (!found) return std::nullopt;
  BERTH_TRY(SealedSetting setting, decode<SealedSetting>(found->value));
  return Stored<SealedSetting>{std::move(setting), found->version};
}

Result<> save_sealed_setting(Session& session, const std::string& name,
                             const SealedSetting& setting, std::int64_t seen, Time now) {
  return save_setting(session, sealed_prefix + name, encode(setting).get_object(), seen, now);
}

Result<std::map<std::string, Stored<SealedSetting>>> list_sealed_settings(Session& session) {
  BERTH_TRY(
      const Rows found,
      query(session,
            "select name, document, version from settings where substr(name, 1, length($1)) = $1",
            sealed_prefix));
  std::map<std::string, Stored<SealedSetting>> all;
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(const std::string name, mapping_detail::to_text(row.at(0), "settings", "name"));
    BERTH_TRY(SealedSetting setting, from_value<SealedSetting>(row.at(1), "settings", "document"));
    BERTH_TRY(const std::int64_t version,
              mapping_detail::to_integer(row.at(2), "settings", "version"));
    all.emplace(name.substr(sealed_prefix.size()),
                Stored<SealedSetting>{std::move(setting), version});
  }
  return all;
}

}  // namespace berth::store
