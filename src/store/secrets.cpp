#include "store/secrets.hpp"

#include "store/settings.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

std::unexpected<Error> secret_not_found_error() {
  return fail(Errc::secret_not_found, "Secret not found", "'berth secret list' shows the secrets");
}

Error name_taken(const core::SecretRecord& secret) {
  return {Errc::secret_name_taken, "Secret already exists: " + secret.name,
          "rotate the one that exists, or choose another name"};
}

Error explain_secret(Error error, const core::SecretRecord& secret) {
  if (violates(error, "company_secrets_company_id_name")) return name_taken(secret);
  if (violates(error, "company_secrets_company_id_key")) {
    return {Errc::secret_key_taken, "Secret key already exists: " + secret.key,
            "choose another key"};
  }
  if (violates_reference(error)) return {Errc::company_not_found, "Company not found"};
  return error;
}

}  // namespace

Result<> insert_secret(Session& session, const core::SecretRecord& secret) {
  // A duplicate name also duplicates the key made from it, and engines differ in which index they
  // check first. So the name is checked first. The indexes still decide between concurrent inserts.
  BERTH_TRY(const Rows same_name,
            query(session,
                  "select id from company_secrets"
                  " where company_id = $1 and name = $2 and deleted_at is null",
                  secret.company_id, secret.name));
  if (!same_name.rows.empty()) return std::unexpected(name_taken(secret));
  Result<> done = insert(session, secret);
  if (!done) return std::unexpected(explain_secret(std::move(done).error(), secret));
  return {};
}

Result<Page<core::SecretRecord>> list_secrets(Session& session, const core::CompanyId& company,
                                              const PageRequest& page) {
  Filter filter;
  filter.equal("company_id", company).also("deleted_at is null");
  return select_page(session, filter, &core::SecretRecord::created_at, page);
}

Result<Stored<core::SecretRecord>> find_secret(Session& session, const core::Reach& reach,
                                               const core::SecretId& id) {
  BERTH_TRY(auto found,
            select_one<core::SecretRecord>(
                session, "where id = $1 and ($2 = '' or company_id = $2) and deleted_at is null",
                id, reach.sql()));
  if (!found) return secret_not_found_error();
  return *std::move(found);
}

Result<> update_secret(Session& session, const Stored<core::SecretRecord>& secret) {
  const Result<bool> moved = update(session, secret);
  if (!moved) return std::unexpected(explain_secret(moved.error(), secret.value));
  if (*moved) return {};
  return fail(Errc::conflict, "Secret " + secret.value.name + " changed since it was read",
              "read it again and repeat the change");
}

Result<> delete_secret(Session& session, const core::SecretId& id) {
  BERTH_TRY(const Rows gone, query(session, "delete from company_secrets where id = $1", id));
  if (gone.changed == 0) return secret_not_found_error();
  return {};
}

Result<std::vector<core::SecretId>> secrets_owned_by(Session& session,
                                                     const core::EnvironmentId& environment) {
  BERTH_TRY(const Rows found,
            query(session,
                  "select id from company_secrets where owned_by_environment_id = $1 order by id",
                  environment));
  std::vector<core::SecretId> list;
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(core::SecretId id, from_value<core::SecretId>(row.at(0), "company_secrets", "id"));
    list.push_back(std::move(id));
  }
  return list;
}

Result<bool> is_needed_for_teardown(Session& session, const core::SecretId& id) {
  // Configs are text to the store. No id is a substring of another, so a text search is exact.
  static const std::string sql =
      "select 1 from environment_leases where " + is_unfinished<core::LeaseState>() +
      " and teardown like $1 union all select 1 from sandboxes where " +
      is_unfinished<core::SandboxState>() + " and config like $1 limit 1";
  BERTH_TRY(const Rows found, query(session, sql, "%" + id.str() + "%"));
  return !found.rows.empty();
}

Result<std::map<std::string, std::int64_t>> binding_counts(Session& session,
                                                           const core::CompanyId& company) {
  BERTH_TRY(const Rows found, query(session,
                                    "select secret_id, count(*) from company_secret_bindings"
                                    " where company_id = $1 group by secret_id",
                                    company));
  std::map<std::string, std::int64_t> counts;
  for (const std::vector<Value>& row : found.rows) {
    using namespace mapping_detail;
    BERTH_TRY(std::string id, to_text(row.at(0), "company_secret_bindings", "secret_id"));
    BERTH_TRY(const std::int64_t count, to_integer(row.at(1), "company_secret_bindings", "count"));
    counts.emplace(std::move(id), count);
  }
  return counts;
}

Result<> insert_version(Session& session, const core::SecretVersion& version) {
  BERTH_DO(query(session,
                 "update company_secret_versions set status = $2, version = version + 1"
                 " where secret_id = $1 and status = $3",
                 version.secret_id, core::SecretVersionStatus::previous,
                 core::SecretVersionStatus::current));
  Result<> done = insert(session, version);
  if (done) return {};
  if (violates(done.error(), "company_secret_versions_secret_id_number")) {
    return fail(Errc::secret_version_stale,
                "The secret version is stale. Reload and confirm the rotation again.");
  }
  if (violates_reference(done.error())) return secret_not_found_error();
  return done;
}

Result<std::optional<core::SecretVersion>> find_version(Session& session, const core::SecretId& id,
                                                        std::int64_t number) {
  BERTH_TRY(auto found, select_one<core::SecretVersion>(
                            session, "where secret_id = $1 and number = $2", id, number));
  if (!found) return std::nullopt;
  return std::move(found->value);
}

Result<std::vector<core::SecretVersion>> list_versions(Session& session, const core::SecretId& id) {
  BERTH_TRY(auto found,
            select<core::SecretVersion>(session, "where secret_id = $1 order by number desc", id));
  return values_of(std::move(found));
}

Result<std::vector<core::SecretVersion>> versions_not_sealed_with(Session& session,
                                                                  const std::string& key_id,
                                                                  const std::string& after,
                                                                  std::int64_t limit) {
  BERTH_TRY(auto found, select<core::SecretVersion>(
                            session, "where key_id <> $1 and id > $2 order by id limit $3", key_id,
                            after, limit));
  return values_of(std::move(found));
}

Result<bool> reseal_version(Session& session, const core::SecretVersion& resealed,
                            const std::string& old_key_id) {
  BERTH_TRY(
      const Rows changed,
      query(session,
            "update company_secret_versions"
            " set key_id = $2, material = $3, fingerprint = $4, version = version + 1"
            " where id = $1 and key_id = $5",
            resealed.id, resealed.key_id, resealed.material, resealed.fingerprint, old_key_id));
  return changed.changed == 1;
}

Result<std::vector<std::string>> key_ids_in_use(Session& session) {
  BERTH_TRY(const Rows found, session.run("select key_id from company_secret_versions"
                                          " union select key_id from heartbeat_run_inputs",
                                          {}));
  std::vector<std::string> list;
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(std::string id,
              mapping_detail::to_text(row.at(0), "company_secret_versions", "key_id"));
    list.push_back(std::move(id));
  }
  BERTH_TRY(const auto settings, list_sealed_settings(session));
  for (const auto& [name, setting] : settings) list.push_back(setting.value.key_id);
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
  return list;
}

Result<> replace_bindings(Session& session, const BindingScope& scope,
                          const std::vector<core::SecretBinding>& bindings) {
  BERTH_DO(query(session,
                 "delete from company_secret_bindings where target_type = $1 and target_id = $2"
                 " and ($3 = '' or substr(config_path, 1, length($3)) = $3)"
                 " and ($4 = '' or substr(config_path, 1, length($4)) <> $4)",
                 scope.target_type, scope.target_id, scope.path_prefix, scope.except_prefix));
  for (const core::SecretBinding& binding : bindings) {
    Result<> done = insert(session, binding);
    if (done) continue;
    if (violates_reference(done.error())) return secret_not_found_error();
    return done;
  }
  return {};
}

Result<std::vector<core::SecretBinding>> bindings_of_secret(Session& session,
                                                            const core::SecretId& id) {
  BERTH_TRY(auto found, select<core::SecretBinding>(
                            session, "where secret_id = $1 order by created_at, id", id));
  return values_of(std::move(found));
}

Result<std::vector<core::SecretBinding>> bindings_of_target(Session& session,
                                                            core::SecretTarget type,
                                                            const std::string& target_id) {
  BERTH_TRY(auto found,
            select<core::SecretBinding>(
                session, "where target_type = $1 and target_id = $2 order by config_path", type,
                target_id));
  return values_of(std::move(found));
}

Result<> insert_access_event(Session& session, const core::SecretAccessEvent& event) {
  Result<> done = insert(session, event);
  if (!done && violates_reference(done.error())) return secret_not_found_error();
  return done;
}

Result<Page<core::SecretAccessEvent>> list_access_events(Session& session, const core::SecretId& id,
                                                         const PageRequest& page) {
  return select_page(session, Filter{}.equal("secret_id", id), &core::SecretAccessEvent::created_at,
                     page);
}

}  // namespace berth::store
