#include "engine/templates/templates.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"
#include "engine/templates/snapshots.hpp"

// Sandboxes as a whole: captured, compared, restored, forked and frozen.
namespace berth::api {
namespace {

struct TemplateOptions {
  std::optional<core::TemplateState> status;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(TemplateOptions, (), (status, environment_id, limit, after))

Task<core::Listing<core::Template>> list_templates(engine::Templates& templates, core::Call call,
                                                   core::CompanyId company,
                                                   TemplateOptions options) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  engine::TemplateFilter filter{.status = options.status, .environment_id = options.environment_id};
  co_return co_await templates.list(std::move(call), std::move(company), std::move(filter),
                                    std::move(page));
}

}  // namespace

std::vector<Entry> template_operations(engine::Templates& templates) {
  using core::Permission;
  using engine::Templates;
  return {
      Operation{.name = "template.list",
                .needs = Permission::company_operate,
                .says = "List the templates of a company, newest first",
                .call = use(templates, list_templates)},
      Operation{.name = "template.get",
                .needs = Permission::company_operate,
                .says = "Read a template",
                .call = use(templates, &Templates::get)},
      Operation{.name = "template.delete",
                .needs = Permission::company_operate,
                .says = "Delete a template; refused while a sandbox, an environment or another "
                        "template stands on it",
                .call = use(templates, &Templates::remove)},
      Operation{.name = "template.adopt",
                .needs = Permission::company_operate,
                .says = "Say which template one waits for whose capture was never answered; it is "
                        "deleted",
                .call = use(templates, &Templates::adopt)},
      Operation{.name = "template.force_resolve",
                .needs = Permission::company_operate,
                .says = "Say that a template whose capture was never answered is not there",
                .call = use(templates, &Templates::force_resolve)},
  };
}

std::vector<Entry> snapshot_operations(engine::Templates& templates, engine::Snapshots& snapshots) {
  using core::Permission;
  using engine::Snapshots;
  using engine::Templates;
  return {
      Operation{.name = "lease.capture",
                .needs = Permission::company_operate,
                .says = "Capture the sandbox of a lease as a template; it stands still meanwhile",
                .call = use(templates, &Templates::capture)},
      Operation{.name = "lease.changes",
                .needs = Permission::company_operate,
                .says = "What was added, changed and removed in a sandbox since it started; in a "
                        "path, bytes that are not printable UTF-8 are written \\xNN, and a "
                        "backslash is doubled",
                .call = use(snapshots, &Snapshots::changes)},
      Operation{.name = "lease.roll_back",
                .needs = Permission::company_operate,
                .says = "Put the files of a sandbox back to what it started from, or to a "
                        "template; its processes end",
                .call = use(snapshots, &Snapshots::roll_back)},
      Operation{.name = "lease.fork",
                .needs = Permission::company_operate,
                .says = "A second sandbox, with a lease of its own, that begins as this one is now",
                .call = use(snapshots, &Snapshots::fork)},
      Operation{.name = "lease.freeze",
                .needs = Permission::company_operate,
                .says = "Let all processes of a sandbox stand still",
                .call = use(snapshots, &Snapshots::freeze)},
      Operation{.name = "lease.thaw",
                .needs = Permission::company_operate,
                .says = "Let the processes of a frozen sandbox go on",
                .call = use(snapshots, &Snapshots::thaw)},
  };
}

}  // namespace berth::api
