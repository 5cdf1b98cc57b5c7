#include "store/companies.hpp"

#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

std::unexpected<Error> company_not_found_error() {
  return fail(Errc::company_not_found, "Company not found",
              "'berth company list' shows the companies that you can reach");
}

}  // namespace

Result<> insert_company(Session& session, const core::Company& company) {
  return insert(session, company);
}

Result<Page<core::Company>> list_companies(Session& session, const core::Reach& reach,
                                           const PageRequest& page) {
  Filter filter;
  filter.equal_if("id", reach.sql());
  return select_page(session, filter, &core::Company::created_at, page);
}

Result<Stored<core::Company>> find_company(Session& session, const core::Reach& reach,
                                           const core::CompanyId& id) {
  BERTH_TRY(auto found, select_one<core::Company>(session, "where id = $1 and ($2 = '' or id = $2)",
                                                  id, reach.sql()));
  if (!found) return company_not_found_error();
  return *std::move(found);
}

Result<> expect_company(Session& session, const core::Reach& reach, const core::CompanyId& id) {
  BERTH_TRY(const Rows found,
            query(session, "select 1 from companies where id = $1 and ($2 = '' or id = $2)", id,
                  reach.sql()));
  if (found.rows.empty()) return company_not_found_error();
  return {};
}

Result<> set_first_default(Session& session, const core::Company& company) {
  BERTH_DO(query(session, "update companies set default_environment_id = $1 where id = $2",
                 company.default_environment_id, company.id));
  return {};
}

Result<> update_company(Session& session, const Stored<core::Company>& company) {
  BERTH_TRY(const bool moved, update(session, company));
  if (moved) return {};
  return fail(Errc::conflict, "Company " + company.value.name + " changed since it was read",
              "read it again and repeat the change");
}

Result<> delete_company(Session& session, const core::CompanyId& id) {
  // The rows that cascade with the company are the only record of what its runs still hold.
  static const std::string sql =
      "delete from companies where id = $1 and not exists (select 1 from environment_leases"
      " where company_id = $1 and status in (" +
      unfinished_states<core::LeaseState>() +
      ")) and not exists (select 1 from sandboxes where company_id = $1 and status in (" +
      unfinished_states<core::SandboxState>() +
      ")) and not exists (select 1 from templates where company_id = $1 and status in (" +
      unfinished_states<core::TemplateState>() +
      ")) and not exists (select 1 from heartbeat_runs where company_id = $1 and status in (" +
      unfinished_states<core::RunState>() + "))";
  BERTH_TRY(const Rows gone, query(session, sql, id));
  if (gone.changed == 1) return {};
  BERTH_TRY(const auto company, find_company(session, core::Reach::everything(), id));
  return fail(
      Errc::company_in_use,
      "Company " + company.value.name +
          " has runs, leases or sandboxes that are not finished, or templates",
      "wait until its runs have ended and their sandboxes are gone, delete its templates, then "
      "repeat");
}

Result<std::int64_t> count_companies(Session& session) {
  BERTH_TRY(const Rows rows, session.run("select count(*) from companies", {}));
  return mapping_detail::to_integer(rows.rows.at(0).at(0), "companies", "count");
}

}  // namespace berth::store
