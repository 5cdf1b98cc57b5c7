#include "store/places/environments.hpp"

#include "base/json/peek.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

// A sandbox of environment $1 that may serve more than one lease. One held by an ephemeral lease is
// destroyed with that lease, whose row has everything that teardown needs.
const std::string& reusable_sandbox() {
  static const std::string sql =
      "environment_id = $1 and status in (" + unfinished_states<core::SandboxState>() +
      ") and not exists (select 1 from environment_leases where id = sandboxes.lease_id"
      " and lease_policy = 'ephemeral')";
  return sql;
}

// Whether environment $1 can be deleted.
const std::string& deletable() {
  static const std::string sql =
      "exists (select 1 from environments where id = $1 and driver <> 'local')"
      " and not exists (select 1 from companies where default_environment_id = $1)"
      " and not exists (select 1 from environment_leases where environment_id = $1"
      " and status = 'pending_cleanup')"
      " and not exists (select 1 from sandboxes where " +
      reusable_sandbox() + ")";
  return sql;
}

Error explain_environment(Error error, const core::Environment& environment) {
  if (violates(error, "environments_company_id_name")) {
    return {Errc::environment_name_taken,
            "An environment named \"" + environment.name + "\" already exists for this company.",
            "choose another name"};
  }
  if (violates(error, "environments_company_id")) {
    return {Errc::environment_local_exists, "A local environment already exists for this company.",
            "use the one that exists"};
  }
  if (violates_reference(error)) return {Errc::company_not_found, "Company not found"};
  return error;
}

}  // namespace

Result<> insert_environment(Session& session, const core::Environment& environment) {
  Result<> done = insert(session, environment);
  if (!done) return std::unexpected(explain_environment(std::move(done).error(), environment));
  return {};
}

Result<Page<core::Environment>> list_environments(Session& session, const core::CompanyId& company,
                                                  const EnvironmentFilter& filter,
                                                  const PageRequest& page) {
  Filter conditions;
  conditions.equal("company_id", company)
      .equal_if("driver", filter.driver)
      .equal_if("status", filter.status);
  return select_page(session, conditions, &core::Environment::updated_at, page);
}

Result<Stored<core::Environment>> find_environment(Session& session, const core::Reach& reach,
                                                   const core::EnvironmentId& id) {
  BERTH_TRY(auto found,
            select_one<core::Environment>(session, "where id = $1 and ($2 = '' or company_id = $2)",
                                          id, reach.sql()));
  if (found) return *std::move(found);
  return fail(Errc::environment_not_found, "Environment not found",
              "'berth env list' shows the environments");
}

Result<std::vector<Stored<core::Environment>>> environments_of_provider(Session& session,
                                                                        std::string_view provider,
                                                                        std::int64_t limit) {
  BERTH_TRY(auto rows, select<core::Environment>(
                           session, "where driver = 'sandbox' order by id limit $1", limit));
  std::erase_if(rows, [&](const Stored<core::Environment>& row) {
    return peek<std::string>(row.value.config, "provider") != provider;
  });
  return rows;
}

Result<std::vector<Stored<core::Environment>>> pooled_environments(Session& session,
                                                                   const core::CompanyId& company) {
  return select<core::Environment>(session,
                                   "where company_id = $1 and driver = 'sandbox'"
                                   " and status = 'active' and config like '%\"poolSize\"%'"
                                   " order by id",
                                   company);
}

Result<std::optional<Stored<core::Environment>>> find_local_environment(
    Session& session, const core::CompanyId& company) {
  return select_one<core::Environment>(session, "where company_id = $1 and driver = 'local'",
                                       company);
}

Result<> update_environment(Session& session, const Stored<core::Environment>& environment) {
  const Result<bool> moved = update(session, environment);
  if (!moved) return std::unexpected(explain_environment(moved.error(), environment.value));
  if (*moved) return {};
  return fail(Errc::conflict,
              "Environment " + environment.value.name + " changed since it was read",
              "read it again and repeat the change");
}

Result<EnvironmentUse> environment_use(Session& session, const core::Environment& environment) {
  // One statement, so that the numbers are consistent.
  static const std::string sql =
      "select (select count(*) from environment_leases where environment_id = $1"
      " and status = 'pending_cleanup'),"
      " (select count(*) from sandboxes where " +
      reusable_sandbox() +
      "), (select count(*) from environment_leases where environment_id = $1"
      " and status in ('acquiring', 'active', 'releasing')),"
      " (select count(*) from agents where default_environment_id = $1),"
      " (select count(*) from company_secret_bindings where target_type = 'environment'"
      " and target_id = $1),"
      " (select count(*) from companies where default_environment_id = $1)";
  BERTH_TRY(const Rows found, query(session, sql, environment.id));
  EnvironmentUse use;
  std::int64_t defaults = 0;
  std::size_t at = 0;
  for (std::int64_t* count :
       {&use.pending_cleanup_leases, &use.reusable_sandboxes, &use.live_leases, &use.agent_defaults,
        &use.secret_bindings, &defaults}) {
    BERTH_TRY(*count, mapping_detail::to_integer(found.rows.at(0).at(at++), "environments", "use"));
  }
  use.is_company_default = defaults > 0;
  return use;
}

Result<bool> delete_environment(Session& session, const core::EnvironmentId& id) {
  // Each step has the same condition as the last one, so either all of them happen or none. The
  // foreign keys would clear the selections too, but without a new version: a writer that had read
  // such a row would then write the dead id back.
  static const std::vector<std::string> steps = {
      "update agents set default_environment_id = null, version = version + 1"
      " where default_environment_id = $1 and " +
          deletable(),
      "delete from company_secret_bindings where target_type = 'environment' and target_id = $1"
      " and " +
          deletable(),
      "update environment_leases set environment_id = null, version = version + 1"
      " where environment_id = $1 and " +
          deletable(),
      "update sandboxes set environment_id = null, version = version + 1"
      " where environment_id = $1 and " +
          deletable(),
      "update heartbeat_runs set environment_id = null, version = version + 1"
      " where environment_id = $1 and " +
          deletable(),
      "delete from environments where id = $1 and " + deletable(),
  };
  Rows last;
  for (const std::string& step : steps) {
    BERTH_TRY(last, query(session, step, id));
  }
  return last.changed == 1;
}

}  // namespace berth::store
