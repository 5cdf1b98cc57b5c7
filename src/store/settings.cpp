#include "store/settings.hpp"

namespace berth::store {

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

}  // namespace berth::store
