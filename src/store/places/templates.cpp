#include "store/places/templates.hpp"

#include "base/id.hpp"
#include "store/nodes.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

using core::Template;
using core::TemplateState;

constexpr std::string_view template_noun = "Template";
// How long an expendable template may remain unused after its capture.
constexpr std::int64_t unused_ms = 10LL * 60 * 1000;

Error explain_template(Error error, const Template& made) {
  if (violates(error, "templates_company_id_name")) {
    return {Errc::conflict,
            "A template named \"" + made.name + "\" already exists for this company.",
            "choose another name, or delete that one"};
  }
  if (violates(error, "templates_environment_id")) {
    return {Errc::conflict, "Another template became the active one of the environment meanwhile"};
  }
  if (violates_reference(error)) return {Errc::environment_not_found, "Environment not found"};
  return error;
}

std::unexpected<Error> template_not_found_error() {
  return fail(Errc::template_not_found, "Template not found");
}

// One that is captured or deleted has a time of its own; one that is there waits for nobody, but
// for an expendable one, which is looked at now and then.
std::optional<Time> time_to_look_at_template(const Template& row, TemplateState state, Time now) {
  switch (state) {
    case TemplateState::capturing: return row.next_attempt_at;
    case TemplateState::ready:
      return row.expendable ? std::optional{now + unused_ms} : std::nullopt;
    case TemplateState::deleting: return now;
    case TemplateState::deleted: break;
  }
  return std::nullopt;
}

}  // namespace

Result<> insert_template(Session& session, const Template& made) {
  Result<> done = insert(session, made);
  if (!done) return std::unexpected(explain_template(std::move(done).error(), made));
  return {};
}

Result<Stored<Template>> find_template(Session& session, const core::Reach& reach,
                                       const core::TemplateId& id) {
  BERTH_TRY(auto found,
            select_one<Template>(
                session, "where id = $1 and status <> 'deleted' and ($2 = '' or company_id = $2)",
                id, reach.sql()));
  if (!found) return template_not_found_error();
  return *std::move(found);
}

Result<bool> was_never_captured(Session& session, const core::TemplateId& id) {
  BERTH_TRY(const auto found,
            select_one<Template>(
                session, "where id = $1 and status = 'deleted' and captured_at is null", id));
  return found.has_value();
}

Result<std::optional<Stored<Template>>> template_with_ref(Session& session,
                                                          const Template& other_than,
                                                          const std::string& ref) {
  return select_one<Template>(session,
                              "where provider = $1 and id <> $2"
                              " and template_ref = $3 and status <> 'deleted' limit 1",
                              other_than.provider, other_than.id, ref);
}

Result<Stored<Template>> find_named_template(Session& session, const core::CompanyId& company,
                                             std::string_view named) {
  BERTH_TRY(auto found, select_one<Template>(session,
                                             "where company_id = $1 and (id = $2 or name = $2)"
                                             " and status <> 'deleted' order by id limit 1",
                                             company, named));
  if (found) return *std::move(found);
  return fail(Errc::template_not_found, "Template '" + std::string{named} + "' not found",
              "list those of the company: berth template list");
}

Result<Page<Template>> list_templates(Session& session, const core::CompanyId& company,
                                      const TemplateFilter& filter, const PageRequest& page) {
  Filter conditions;
  conditions.equal("company_id", company)
      .equal_if("status", filter.status)
      .equal_if("environment_id", filter.environment_id);
  conditions.also("status <> 'deleted'");
  return select_page(session, conditions, &Template::created_at, page);
}

Result<std::optional<Stored<Template>>> active_template(Session& session,
                                                        const core::EnvironmentId& environment) {
  return select_one<Template>(
      session, "where environment_id = $1 and role = 'active' and status = 'ready'", environment);
}

Result<std::optional<Stored<Template>>> superseded_template(
    Session& session, const core::EnvironmentId& environment) {
  return select_one<Template>(session,
                              "where environment_id = $1 and role = 'superseded'"
                              " and status = 'ready' order by captured_at desc, id desc limit 1",
                              environment);
}

Result<std::vector<std::string>> users_of_template(Session& session, const Template& used) {
  static const std::string sql =
      "select 'template ' || name from templates where source_template_id = $1 and status in (" +
      unfinished_states<TemplateState>() +
      ") union all select 'sandbox ' || id from sandboxes where company_id = $2 and status in (" +
      unfinished_states<core::SandboxState>() +
      ") and config like $3"
      " union all select 'environment ' || name from environments where company_id = $2"
      " and (config like $3 or config like $4) limit 10";
  // Ids and references come from us or from the provider; a name is matched as written.
  const std::string by_ref = "%\"" + used.binding.field +
                             "\":" + encode_text(used.template_ref.value_or(used.id.str())) + "%";
  const std::string by_name = "%\"" + used.binding.field + "\":" + encode_text(used.name) + "%";
  BERTH_TRY(const Rows found, query(session, sql, used.id, used.company_id, by_ref, by_name));
  std::vector<std::string> users;
  for (const auto& row : found.rows) {
    BERTH_TRY(std::string user, mapping_detail::to_text(row.at(0), "templates", "user"));
    users.push_back(std::move(user));
  }
  return users;
}

Result<Stored<Template>> move_template(Session& session, Stored<Template> row,
                                       core::TemplateEvent event, Time now) {
  Template& value = row.value;
  if (const auto next = core::advance(value.status, event)) {
    value.next_attempt_at = time_to_look_at_template(value, *next, now);
  }
  value.updated_at = now;
  const Template wanted = value;
  Result<Stored<Template>> moved = move_row(session, std::move(row), event, template_noun);
  if (!moved) return std::unexpected(explain_template(std::move(moved).error(), wanted));
  return moved;
}

Result<Stored<Template>> update_template(Session& session, Stored<Template> row, Time now) {
  row.value.updated_at = now;
  const Template wanted = row.value;
  Result<Stored<Template>> written = rewrite(session, std::move(row), template_noun);
  if (!written) return std::unexpected(explain_template(std::move(written).error(), wanted));
  return written;
}

Result<> make_due(Session& session, const std::optional<core::TemplateId>& id, Time now) {
  if (!id) return {};
  // Leaves the version alone, so a concurrent writer does not conflict. At worst the row becomes
  // due later.
  BERTH_DO(query(session,
                 "update templates set next_attempt_at = $2"
                 " where id = $1 and expendable <> 0 and status = 'ready' and next_attempt_at > $2",
                 *id, now));
  return {};
}

Result<std::vector<Stored<Template>>> due_templates(Session& session, const core::NodeId& node,
                                                    Time now, std::int64_t limit) {
  static const std::string tail = "where status in (" + unfinished_states<TemplateState>() +
                                  ") and next_attempt_at <= $1 and " +
                                  is_for_node("templates", "$2") +
                                  " order by next_attempt_at, id limit $3";
  return select<Template>(session, tail, now, node, limit);
}

}  // namespace berth::store
