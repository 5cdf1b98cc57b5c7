#include "cli/commands/common.hpp"
#include "core/lifecycle.hpp"

namespace berth::cli {
namespace {

struct LeaseOptions {
  std::string named;
  std::string environment;
  std::string status;
  std::string reason;
  std::string sandbox;
  bool parked = false;
};

Result<> list_leases(Context& context, const LeaseOptions& options) {
  BERTH_TRY(std::string path, context.company_path("environment-leases"));
  const char* joint = "?";
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    path += std::exchange(joint, "&") + std::string{key} + "=" + url_encoded(value);
  };
  add("status", options.status);
  add("parked", options.parked ? "true" : "");
  if (!options.environment.empty()) {
    BERTH_TRY(const std::string id, context.find_id(environment_kind(), options.environment));
    add("environmentId", id);
  }
  BERTH_TRY(bj::array rows, context.list(path));
  if (!context.printer().is_json()) context.add_names(rows);
  context.printer().list(rows, lease_kind().columns);
  return {};
}

Result<> post_to_lease(Context& context, const LeaseOptions& options, const std::string& verb,
                       std::optional<bj::value> body = {}) {
  BERTH_TRY(const std::string id, context.find_id(lease_kind(), options.named));
  BERTH_TRY(const bj::value lease,
            context.send({.method = "POST",
                          .path = "/api/environment-leases/" + id + "/" + verb,
                          .body = std::move(body)}));
  if (context.printer().look() == Look::json) context.printer().object(lease);
  context.printer().note("lease " + text_of(lease, "id") + " is " + text_of(lease, "status") +
                         ": " + text_of(lease, "nextStep"));
  return {};
}

Result<> destroy(Context& context, const LeaseOptions& options) {
  BERTH_DO(confirm(context.console(),
                   "Destroy the sandbox of lease " + options.named + " with all that is in it?",
                   context.flags().yes));
  return post_to_lease(context, options, "destroy");
}

Result<> force(Context& context, const LeaseOptions& options) {
  BERTH_DO(
      confirm(context.console(),
              "End lease " + options.named + " although its provider may still hold something?",
              context.flags().yes));
  return post_to_lease(context, options, "force-resolve",
                       bj::value(bj::object{{"reason", options.reason}}));
}

Result<> adopt(Context& context, const LeaseOptions& options) {
  BERTH_DO(confirm(context.console(),
                   "Destroy sandbox " + options.sandbox + " of the provider of lease " +
                       options.named + " with all that is in it?",
                   context.flags().yes));
  return post_to_lease(context, options, "adopt",
                       bj::value(bj::object{{"providerLeaseId", options.sandbox}}));
}

CLI::App& add_about_lease(CommandTree& tree, CLI::App& group, const char* name, const char* says,
                          const char* example, const std::shared_ptr<LeaseOptions>& options,
                          Result<> (*action)(Context&, const LeaseOptions&)) {
  CLI::App& app = tree.leaf(group, name, says, example, [options, action](Context& context) {
    return action(context, *options);
  });
  app.add_option("lease", options->named, "its id or an end of it")->required();
  return app;
}

}  // namespace

void add_lease_commands(CommandTree& tree) {
  CLI::App& group = tree.group("lease", "leases: who holds which place");
  const auto wanted = std::make_shared<LeaseOptions>();
  CLI::App& lists =
      tree.leaf(group, "list", "list them, most recently used first", "berth lease list --parked",
                [wanted](Context& context) { return list_leases(context, *wanted); });
  add_environment_flag(lists, wanted->environment, "only those of this environment");
  add_old_name(lists, "--env", wanted->environment);
  add_choice<core::LeaseState>(lists, "--status", wanted->status, "only those in this state");
  lists.add_flag("--parked", wanted->parked, "only those that wait for an operator");
  add_get(tree, group, lease_kind(), "berth lease get 44f87a21");
  add_about_lease(tree, group, "release", "give one back that no run works with",
                  "berth lease release 44f87a21", std::make_shared<LeaseOptions>(),
                  [](Context& context, const LeaseOptions& options) {
                    return post_to_lease(context, options, "release");
                  });
  add_about_lease(tree, group, "destroy", "give one back and destroy its sandbox",
                  "berth lease destroy 44f87a21 --yes", std::make_shared<LeaseOptions>(), destroy);
  const auto adopted = std::make_shared<LeaseOptions>();
  CLI::App& adopts = add_about_lease(
      tree, group, "adopt",
      "name the sandbox of one whose create call was never answered; Berth destroys it",
      "berth lease adopt 44f87a21 --sandbox sbx-4711", adopted, adopt);
  adopts.add_option("--sandbox", adopted->sandbox, "its ID at the provider")
      ->type_name("ID")
      ->required();
  const auto forced = std::make_shared<LeaseOptions>();
  CLI::App& forces = add_about_lease(
      tree, group, "force-resolve", "end one without checking what its provider still holds",
      "berth lease force-resolve 44f87a21 --reason 'host is gone'", forced, force);
  forces.add_option("--reason", forced->reason, "why; it is kept with the lease")
      ->type_name("TEXT")
      ->required();
}

}  // namespace berth::cli
