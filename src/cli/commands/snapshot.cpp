#include "cli/commands/common.hpp"
#include "cli/commands/follow.hpp"
#include "cli/commands/place.hpp"
#include "cli/run/span.hpp"
#include "core/lifecycle.hpp"

#include <ostream>

// Sandboxes as a whole: compared, captured, restored and forked.
namespace berth::cli {
namespace {

const Kind& template_kind() {
  static const Kind kind{.noun = "template",
                         .path = "templates",
                         .missing = Errc::template_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name"},
                                     {"STATUS", "status", Shown::state},
                                     {"ROLE", "role"},
                                     {"PROVIDER", "provider"},
                                     {"CAPTURED", "capturedAt", Shown::moment}}};
  return kind;
}

struct SnapshotOptions {
  std::string named;
  std::string name;
  std::string from;
  std::string ttl;
};

Result<bj::value> post_to_snapshot(Context& context, const SnapshotOptions& options,
                                   const std::string& verb, std::optional<bj::value> body = {}) {
  BERTH_TRY(const std::string id, find_place(context, options.named));
  return context.send({.method = "POST",
                       .path = "/api/environment-leases/" + id + "/" + verb,
                       .body = std::move(body)});
}

Result<> show_lease(Context& context, const bj::value& lease, const std::string& what) {
  if (context.printer().look() == Look::json) context.printer().object(lease);
  context.printer().note("lease " + text_of(lease, "id") + " " + what);
  return {};
}

Result<> diff(Context& context, const SnapshotOptions& options) {
  static const std::vector<Column> columns{
      {"CHANGE", "change"}, {"KIND", "kind"}, {"BYTES", "bytes"}, {"PATH", "path"}};
  BERTH_TRY(const std::string id, find_place(context, options.named));
  BERTH_TRY(const bj::value found, context.get("/api/environment-leases/" + id + "/changes"));
  if (context.printer().look() == Look::json) {
    context.printer().object(found);
    return {};
  }
  context.printer().list(found.at("changes").as_array(), columns);
  if (found.at("isTruncated").as_bool()) context.printer().note("and more, which are not listed");
  return {};
}

Result<> commit(Context& context, const SnapshotOptions& options) {
  BERTH_TRY(const bj::value made, post_to_snapshot(context, options, "capture",
                                                   bj::value(bj::object{{"name", options.name}})));
  context.printer().object(made);
  return {};
}

Result<> roll_back(Context& context, const SnapshotOptions& options) {
  BERTH_DO(confirm(context.console(),
                   "End all processes of the sandbox of lease " + options.named +
                       " and forget what it has written?",
                   context.flags().yes));
  bj::object body;
  set_text(body, "template", options.from);
  BERTH_TRY(const bj::value lease,
            post_to_snapshot(context, options, "rollback", bj::value(std::move(body))));
  return show_lease(context, lease, "has a fresh sandbox");
}

Result<> fork(Context& context, const SnapshotOptions& options) {
  bj::object body;
  if (!options.ttl.empty()) {
    BERTH_TRY(const std::int64_t ms, parse_span_ms(options.ttl, "--ttl"));
    body["ttlSeconds"] = ms / 1000;
  }
  BERTH_TRY(const bj::value lease,
            post_to_snapshot(context, options, "fork", bj::value(std::move(body))));
  return show_lease(context, lease, "begins as that one is now: " + text_of(lease, "nextStep"));
}

Result<> freeze(Context& context, const SnapshotOptions& options) {
  BERTH_TRY(const bj::value lease, post_to_snapshot(context, options, "freeze"));
  return show_lease(context, lease, "stands still");
}

Result<> thaw(Context& context, const SnapshotOptions& options) {
  BERTH_TRY(const bj::value lease, post_to_snapshot(context, options, "thaw"));
  return show_lease(context, lease, "goes on");
}

// What the run of a sandbox has said up to now. A run is one by itself; it may be over.
Result<> snapshot_logs(Context& context, const SnapshotOptions& options) {
  if (const auto run = context.find(run_kind(), options.named)) {
    return show_log_so_far(context, {.run_id = text_of(*run, "id")});
  }
  BERTH_TRY(const std::string id, find_place(context, options.named));
  BERTH_TRY(const bj::value lease, context.get("/api/environment-leases/" + id));
  const std::string run = text_of(lease, "heartbeatRunId");
  if (run.empty()) return fail(Errc::conflict, "lease " + id + " has no run, so it has no log");
  return show_log_so_far(context, {.run_id = run});
}

struct UnansweredOptions {
  std::string named;
  std::string ref;
  std::string reason;
};

Result<> resolve_snapshot(Context& context, const UnansweredOptions& options,
                          const std::string& verb, bj::object body) {
  BERTH_TRY(const std::string id, context.find_id(template_kind(), options.named));
  BERTH_TRY(const bj::value row, context.send({.method = "POST",
                                               .path = "/api/templates/" + id + "/" + verb,
                                               .body = bj::value(std::move(body))}));
  if (context.printer().look() == Look::json) context.printer().object(row);
  context.printer().note("template " + text_of(row, "id") + " is " + text_of(row, "status"));
  return {};
}

void add_unanswered(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<UnansweredOptions>();
  CLI::App& adopts = tree.leaf(
      group, "adopt", "say which one it is whose capture was never answered; it is deleted",
      "berth template adopt 44f87a21 --ref snap-4711 --yes",
      [options](Context& context) -> Result<> {
        BERTH_DO(confirm(context.console(), "Delete " + options->ref + " at the provider?",
                         context.flags().yes));
        return resolve_snapshot(context, *options, "adopt", {{"templateRef", options->ref}});
      });
  CLI::App& forces = tree.leaf(
      group, "force-resolve", "say that one whose capture was never answered is not there",
      "berth template force-resolve 44f87a21 --reason 'not there'", [options](Context& context) {
        return resolve_snapshot(context, *options, "force-resolve", {{"reason", options->reason}});
      });
  for (CLI::App* const app : {&adopts, &forces}) {
    app->add_option("template", options->named, "its name or id")->required();
  }
  adopts.add_option("--ref", options->ref, "its reference at the provider")
      ->type_name("REFERENCE")
      ->required();
  forces.add_option("--reason", options->reason, "why; it is kept with the template")
      ->type_name("TEXT")
      ->required();
}

using Verb = Result<> (*)(Context&, const SnapshotOptions&);

CLI::App& add_verb(CommandTree& tree, CLI::App& group, const char* name, const char* says,
                   const char* example, const std::shared_ptr<SnapshotOptions>& options,
                   Verb verb) {
  CLI::App& app = tree.leaf(group, name, says, example,
                            [options, verb](Context& context) { return verb(context, *options); });
  app.add_option("place", options->named, place_words)->required();
  return app;
}

}  // namespace

void add_snapshot_commands(CommandTree& tree, CLI::App& sandbox) {
  const auto fresh = [] { return std::make_shared<SnapshotOptions>(); };
  add_verb(tree, sandbox, "diff", "what was added, changed and removed in one since it started",
           "berth sandbox diff 44f87a21", fresh(), diff);
  const auto committed = fresh();
  add_verb(tree, sandbox, "commit", "capture one as a template; it stands still meanwhile",
           "berth sandbox commit 44f87a21 with-node", committed, commit)
      .add_option("name", committed->name, "the name of the template")
      ->required();
  const auto rolled = fresh();
  add_verb(tree, sandbox, "rollback",
           "put its files back to what it started from, or to a template; its processes end",
           "berth sandbox rollback 44f87a21 with-node --yes", rolled, roll_back)
      .add_option("template", rolled->from, "the name or id of a template");
  const auto forked = fresh();
  add_verb(tree, sandbox, "fork", "make a second one that begins as this one is now",
           "berth sandbox fork 44f87a21 --ttl 2h", forked, fork)
      .add_option("--ttl", forked->ttl, "how long it is held; an hour unless said")
      ->type_name("TIME");
  add_verb(tree, sandbox, "freeze", "pause all its processes", "berth sandbox freeze 44f87a21",
           fresh(), freeze);
  add_verb(tree, sandbox, "thaw", "continue the processes of a frozen one",
           "berth sandbox thaw 44f87a21", fresh(), thaw);
  add_verb(tree, sandbox, "logs", "print what its run has said up to now",
           "berth sandbox logs 44f87a21", fresh(), snapshot_logs);
}

void add_template_commands(CommandTree& tree) {
  CLI::App& group = tree.group("template", "templates: captured sandboxes that others start from");
  add_list(tree, group, template_kind());
  add_get(tree, group, template_kind(), "berth template get with-node");
  add_delete(tree, group, template_kind(), "berth template delete with-node --yes");
  add_unanswered(tree, group);
}

}  // namespace berth::cli
