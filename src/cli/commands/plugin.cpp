#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"

#include <unistd.h>
#include <array>
#include <climits>
#include <cstdlib>

// Server plugins: installed, run, upgraded and removed by an instance administrator.
namespace berth::cli {
namespace {

struct PluginOptions {
  std::string named;
  std::string version;
  std::string reason;
  std::string status;
  std::string level;
  std::string since;
  std::string config;
  std::vector<std::string> set;
  std::vector<std::string> allow;
  std::int64_t lines = 25;
  bool accept = false;
  bool purge = false;
  bool force = false;
  bool test = false;
  bool nothing = false;
};

const std::vector<Column>& plugin_columns() {
  static const std::vector<Column> list = {{"KEY", "pluginKey"},
                                           {"VERSION", "version"},
                                           {"STATUS", "status", Shown::state},
                                           {"ISOLATION", "isolation"},
                                           {"SOURCE", "source"},
                                           {"PACKAGE", "packageName"},
                                           {"CHANGED", "updatedAt", Shown::moment},
                                           {"LAST ERROR", "lastError", Shown::words}};
  return list;
}

// A name goes into a path, where it must not be more than one part of it.
Result<std::string> plugin_path(const std::string& named, const std::string& rest = "") {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  if (!named.empty() && std::ranges::all_of(named, plain) && named != "." && named != "..") {
    return "/api/plugins/" + named + rest;
  }
  return fail(Errc::bad_request, "'" + named + "' is neither an id nor a key of a plugin",
              "'berth plugin list' shows the keys");
}

Result<> list_plugins(Context& context, const PluginOptions& options) {
  const std::string query = options.status.empty() ? "" : "?status=" + options.status;
  BERTH_TRY(const bj::value found, context.get("/api/plugins" + query));
  context.printer().list(found.is_array() ? found.get_array() : bj::array{}, plugin_columns());
  return {};
}

Result<> get(Context& context, const PluginOptions& options) {
  BERTH_TRY(const std::string path, plugin_path(options.named));
  BERTH_TRY(const bj::value found, context.get(path));
  context.printer().object(found);
  return {};
}

// Local folders are sent as absolute paths, because the server has another working folder.
Result<> install(Context& context, const PluginOptions& options) {
  bj::object body;
  const bool is_path = options.named.starts_with('/') || options.named.starts_with('.') ||
                       options.named.ends_with(".tgz") || options.named.ends_with(".tar.gz");
  if (is_path) {
    std::array<char, PATH_MAX> whole{};
    if (::realpath(options.named.c_str(), whole.data()) == nullptr) {
      return fail(Errc::file_not_found, "'" + options.named + "' is not there",
                  "name a folder or an archive, or a package of the npm registry");
    }
    body["packageName"] = whole.data();
    body["isLocalPath"] = true;
  } else {
    body["packageName"] = options.named;
    if (!options.version.empty()) body["version"] = options.version;
  }
  BERTH_TRY(
      const bj::value made,
      context.send({.method = "POST", .path = "/api/plugins/install", .body = std::move(body)}));
  if (context.printer().look() == Look::json) {
    context.printer().object(made);
    return {};
  }
  const std::string key = text_of(made, "pluginKey");
  if (text_of(made, "status") != "ready") {
    context.printer().note("installed " + key +
                           ", but it does not run: " + text_of(made, "lastError"));
    return {};
  }
  context.printer().note("installed " + key + " " + text_of(made, "version") + ", and it runs");
  return {};
}

Result<> change_plugin(Context& context, const PluginOptions& options, const std::string& verb,
                       bj::object body, const std::string& done) {
  BERTH_TRY(const std::string path, plugin_path(options.named, "/" + verb));
  BERTH_TRY(const bj::value made,
            context.send({.method = "POST", .path = path, .body = std::move(body)}));
  if (context.printer().look() == Look::json) {
    context.printer().object(made);
    return {};
  }
  context.printer().note(text_of(made, "pluginKey") + " " + done + ": " + text_of(made, "status") +
                         ", version " + text_of(made, "version"));
  return {};
}

Result<> enable(Context& context, const PluginOptions& options) {
  return change_plugin(context, options, "enable", {}, "enabled");
}

Result<> disable(Context& context, const PluginOptions& options) {
  bj::object body;
  set_text(body, "reason", options.reason);
  return change_plugin(context, options, "disable", std::move(body), "disabled");
}

Result<> restart(Context& context, const PluginOptions& options) {
  return change_plugin(context, options, "restart", {}, "restarted");
}

Result<> upgrade(Context& context, const PluginOptions& options) {
  bj::object body;
  set_text(body, "version", options.version);
  if (options.accept) body["acceptCapabilities"] = true;
  return change_plugin(context, options, "upgrade", std::move(body), "upgraded");
}

Result<> plugin_egress(Context& context, const PluginOptions& options) {
  BERTH_TRY(const std::string path, plugin_path(options.named, "/egress"));
  if (options.allow.empty() && !options.nothing) {
    BERTH_TRY(const bj::value found, context.get(path + "?limit=" + std::to_string(options.lines)));
    static const std::vector<Column> shown = {{"TIME", "at", Shown::moment},
                                              {"DECISION", "decision", Shown::state},
                                              {"METHOD", "method"},
                                              {"HOST", "host"},
                                              {"PORT", "port"},
                                              {"PATH", "path"},
                                              {"RULE", "rule"},
                                              {"REASON", "reason", Shown::words}};
    context.printer().list(found.at("entries").as_array(), shown);
    return {};
  }
  bj::array allow;
  for (const std::string& rule : options.allow) allow.emplace_back(rule);
  BERTH_TRY(const bj::value made,
            context.send({.method = "PUT", .path = path, .body = bj::object{{"allow", allow}}}));
  context.printer().object(made);
  return {};
}

Result<> uninstall(Context& context, const PluginOptions& options) {
  std::string query;
  if (options.purge) query += "?purge=true";
  if (options.force) query += query.empty() ? "?force=true" : "&force=true";
  BERTH_TRY(const std::string path, plugin_path(options.named));
  BERTH_DO(confirm(context.console(), "Uninstall the plugin '" + options.named + "'?",
                   context.flags().yes));
  BERTH_TRY(const bj::value gone, context.send({.method = "DELETE", .path = path + query}));
  if (context.printer().look() == Look::json) context.printer().object(gone);
  context.printer().note("uninstalled the plugin '" + options.named + "'");
  return {};
}

Result<> config(Context& context, const PluginOptions& options) {
  BERTH_TRY(const std::string company, context.company_id());
  BERTH_TRY(const std::string path, plugin_path(options.named, "/config"));
  BERTH_TRY(bj::value found, context.get(path + "?companyId=" + company));
  if (options.config.empty() && options.set.empty()) {
    context.printer().object(found);
    return {};
  }
  bj::object wanted;
  if (!options.config.empty()) {
    BERTH_TRY(wanted, read_object(options.config, "--config"));
  } else {
    wanted = peek<bj::object>(found, "configJson").value_or(bj::object{});
  }
  BERTH_DO(lay_over(wanted, options.set, "--set"));
  bj::object body{{"companyId", company}, {"configJson", std::move(wanted)}};
  BERTH_TRY(const bj::value made, context.send({.method = "POST",
                                                .path = path + (options.test ? "/test" : ""),
                                                .body = std::move(body)}));
  context.printer().object(made);
  return {};
}

Result<> plugin_logs(Context& context, const PluginOptions& options) {
  BERTH_TRY(std::string path,
            plugin_path(options.named, "/logs?limit=" + std::to_string(options.lines)));
  if (!options.level.empty()) path += "&level=" + options.level;
  if (!options.since.empty()) {
    const auto since = parse_iso8601(options.since);
    if (!since) return fail(Errc::bad_request, "--since '" + options.since + "': is not a time");
    path += "&since=" + to_iso8601(*since);
  }
  BERTH_TRY(const bj::value found, context.get(path));
  static const std::vector<Column> shown = {{"TIME", "createdAt", Shown::moment},
                                            {"LEVEL", "level", Shown::state},
                                            {"MESSAGE", "message", Shown::words}};
  context.printer().list(found.is_array() ? found.get_array() : bj::array{}, shown);
  return {};
}

Result<> health(Context& context, const PluginOptions& options) {
  BERTH_TRY(const std::string path, plugin_path(options.named, "/health"));
  BERTH_TRY(const bj::value found, context.get(path));
  context.printer().object(found);
  if (!peek<bool>(found, "healthy").value_or(false)) context.end_with(1);
  return {};
}

struct Leaf {
  std::string name;
  std::string says;
  std::string example;
  Result<> (*act)(Context&, const PluginOptions&);
};

CLI::App& add_leaf(CommandTree& tree, CLI::App& group, const Leaf& leaf,
                   const std::shared_ptr<PluginOptions>& options) {
  return tree.leaf(group, leaf.name, leaf.says, leaf.example,
                   [options, act = leaf.act](Context& context) { return act(context, *options); });
}

CLI::App& add_named(CommandTree& tree, CLI::App& group, const Leaf& leaf,
                    const std::shared_ptr<PluginOptions>& options) {
  CLI::App& app = add_leaf(tree, group, leaf, options);
  app.add_option("plugin", options->named, "its key or its id")->required();
  return app;
}

void add_life(CommandTree& tree, CLI::App& group) {
  const auto fresh = [] { return std::make_shared<PluginOptions>(); };
  auto options = fresh();
  CLI::App& installs = add_leaf(tree, group,
                                {"install", "bring a plugin here, check it and start it",
                                 "berth plugin install ./my-provider", install},
                                options);
  installs
      .add_option("package", options->named,
                  "a folder, a .tgz archive, or a package of the npm registry")
      ->required();
  installs.add_option("--version", options->version, "of a package of the registry");

  options = fresh();
  add_named(
      tree, group,
      {"enable", "start one that is disabled or failed", "berth plugin enable my-provider", enable},
      options);

  options = fresh();
  add_named(tree, group,
            {"disable", "stop one until it is enabled again", "berth plugin disable my-provider",
             disable},
            options)
      .add_option("--reason", options->reason, "why; it is kept with the plugin");

  options = fresh();
  add_named(tree, group,
            {"restart", "give one another worker", "berth plugin restart my-provider", restart},
            options);

  options = fresh();
  CLI::App& reaches = add_named(
      tree, group,
      {"egress", "what one has asked to reach; set what it may reach besides the public internet",
       "berth plugin egress my-provider\n"
       "berth plugin egress my-provider --allow 10.0.0.0/8:443",
       plugin_egress},
      options);
  reaches.add_option("--allow", options->allow, "a name or a range, as in an environment's egress")
      ->type_name("RULE");
  reaches.add_flag("--none", options->nothing, "remove all rules: the public internet alone")
      ->excludes("--allow");
  reaches.add_option("--lines", options->lines, "the newest decisions, at most 1000");

  options = fresh();
  CLI::App& upgrades = add_named(tree, group,
                                 {"upgrade", "bring one to another version",
                                  "berth plugin upgrade my-provider --accept", upgrade},
                                 options);
  upgrades.add_option("--version", options->version, "of a package of the registry");
  upgrades.add_flag("--accept", options->accept, "what the new version asks for in addition");

  options = fresh();
  CLI::App& removes = add_named(
      tree, group,
      {"uninstall", "stop one and remove it", "berth plugin uninstall my-provider", uninstall},
      options);
  removes.add_flag("--purge", options->purge, "with all that it keeps here");
  removes.add_flag("--force", options->force, "although it holds sandboxes, which then wait");
}

void add_looks(CommandTree& tree, CLI::App& group) {
  const auto fresh = [] { return std::make_shared<PluginOptions>(); };
  auto options = fresh();
  CLI::App& lists =
      add_leaf(tree, group, {"list", "list them in their order", "berth plugin list", list_plugins},
               options);
  lists.add_option("--status", options->status,
                   "installed, ready, disabled, error, upgrade_pending or uninstalled");

  options = fresh();
  add_named(tree, group, {"get", "show one with its manifest", "berth plugin get my-provider", get},
            options);

  options = fresh();
  CLI::App& configs = add_named(tree, group,
                                {"config", "show or change what a company has set for one",
                                 "berth plugin config my-provider --set region=eu", config},
                                options);
  configs.add_option("--config", options->config, "all of it, as JSON or @file");
  configs.add_option("--set", options->set, "one field: key=value");
  configs.add_flag("--test", options->test,
                   "ask the plugin whether it would do, and store nothing");

  options = fresh();
  CLI::App& lines = add_named(tree, group,
                              {"logs", "show what one said, the newest first",
                               "berth plugin logs my-provider --level error", plugin_logs},
                              options);
  lines.add_option("--lines", options->lines, "how many, at most 500");
  lines.add_option("--level", options->level, "debug, info, warn, error or metric");
  lines.add_option("--since", options->since, "a moment in ISO 8601");

  options = fresh();
  add_named(tree, group,
            {"health", "ask how one fares; fails when it is not healthy",
             "berth plugin health my-provider", health},
            options);
}

}  // namespace

void add_plugin_commands(CommandTree& tree) {
  CLI::App& group = tree.group("plugin", "plugins: providers of other people");
  add_life(tree, group);
  add_looks(tree, group);
  add_plugin_dev_commands(tree, group);
}

}  // namespace berth::cli
