#include "engine/plugins/plugins.hpp"

#include "base/fault_point.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "engine/plugins/plugin_egress.hpp"
#include "engine/upkeep/node_life.hpp"

#include <algorithm>

namespace berth::engine {
namespace {

using core::PluginEvent;
using core::PluginFolderUse;
using core::PluginSource;
using core::PluginState;

plugins::PackageOrigin origin_of(PluginSource source) {
  return source == PluginSource::folder ? plugins::PackageOrigin::folder
                                        : plugins::PackageOrigin::registry;
}

// Copies the facts of a verified package to the row.
void describe(core::Plugin& row, const FetchedPackage& fetched) {
  row.package_version = fetched.manifest.version;
  row.categories = fetched.manifest.categories;
  row.manifest = fetched.manifest.document;
  row.package_path = fetched.package.folder;
}

std::vector<std::string> added_capabilities(const core::Plugin& before,
                                            const plugins::Manifest& after) {
  std::set<std::string> known;
  if (const bj::array* list = array_in(before.manifest, "capabilities")) {
    for (const bj::value& name : *list) {
      if (name.is_string()) known.emplace(name.get_string());
    }
  }
  std::vector<std::string> added;
  std::ranges::set_difference(after.capabilities, known, std::back_inserter(added));
  return added;
}

std::unexpected<Error> review_needed(const core::Plugin& plugin, const core::PendingUpgrade& next) {
  std::string names;
  for (const std::string& name : next.added_capabilities) {
    names += (names.empty() ? "" : ", ") + name;
  }
  Error error{Errc::plugin_review_needed,
              "Version " + next.version + " of plugin \"" + plugin.plugin_key +
                  "\" asks for more than version " + plugin.package_version + ": " + names,
              "accept it with 'berth plugin upgrade " + plugin.plugin_key +
                  " --accept'; until then " + plugin.package_version + " serves"};
  error.facts["addedCapabilities"] = next.added_capabilities;
  return std::unexpected(std::move(error));
}

// The operator's own folder may by now hold a different package from the accepted one.
std::optional<core::PendingUpgrade> unseen_upgrade(const core::Plugin& row,
                                                   const FetchedPackage& package) {
  std::vector<std::string> added = added_capabilities(row, package.manifest);
  if (added.empty()) return std::nullopt;
  return core::PendingUpgrade{.version = package.manifest.version,
                              .manifest = package.manifest.document,
                              .added_capabilities = std::move(added),
                              .package_path = package.package.folder,
                              .folder_id = row.folder_id};
}

ProviderCapability capability_of(const plugins::DriverDeclaration& driver,
                                 const plugins::PluginStatus& status) {
  ProviderCapability out;
  out.status =
      status.state == plugins::WorkerState::running ? Support::supported : Support::unsupported;
  out.supports_saved_probe = true;
  out.supports_unsaved_probe = true;
  out.supports_run_execution = true;
  // A capability counts only if the manifest declares it and the worker advertises it.
  const auto can = [&](bool declared, const char* method) {
    return declared && status.methods.contains(method);
  };
  const bool reuses = driver.capabilities.reusable_leases == true;
  out.supports_reusable_leases = can(reuses, "environmentResumeLease") &&
                                 can(reuses, "environmentReleaseLease") &&
                                 can(reuses, "environmentDestroyLease");
  out.supports_interactive_setup =
      can(driver.supports_interactive_setup, "environmentStartInteractiveSetup");
  out.interactive_setup_connection_types = driver.interactive_setup_connection_types;
  out.supports_template_capture =
      can(driver.supports_template_capture, "environmentCaptureTemplate") &&
      driver.template_config_binding;
  if (out.supports_template_capture) {
    out.template_ref_kind = driver.template_ref_kind;
    out.template_config_binding = {.field = driver.template_config_binding->field,
                                   .unset_fields = driver.template_config_binding->unset_fields};
  }
  out.supports_template_delete = can(driver.supports_template_delete, "environmentDeleteTemplate");
  out.supports_login_pty = can(driver.supports_login_pty, "loginPtyOpen") ||
                           can(driver.supports_login_pty, "setupTokenPtyOpen");
  out.display_name = driver.display_name;
  out.description = driver.description;
  out.source = "plugin";
  out.plugin_key = status.plugin_key;
  out.plugin_id = status.id.str();
  out.config_schema = driver.config_schema;
  return out;
}

}  // namespace

Plugins::Plugins(Services& services, Catalog& catalog, PluginPlace* place, core::NodeId node,
                 std::set<core::NodeId> former)
    : services_(services),
      catalog_(catalog),
      place_(place),
      node_(std::move(node)),
      former_(std::move(former)) {
  if (place_ == nullptr) return;
  place_->services.on_change([this] { refresh_catalog(); });
  place_->services.deliver_events_by([&host = place_->host](const core::PluginId& plugin,
                                                            const core::CompanyId& company,
                                                            bj::object event) {
    const bj::object params{{"event", std::move(event)}};
    if (host.tell(plugin, "onEvent", params, company)) return;
    log::debug("plugin.event_dropped", {{"plugin", plugin}});
  });
}

Result<PluginPlace*> Plugins::place() const {
  if (place_ != nullptr) return place_;
  return fail(Errc::plugin_unavailable, "this server has no place for plugins");
}

Result<Plugins::Turn> Plugins::take_turn(const std::string& key) {
  if (busy_.insert(key).second) return Turn{busy_, key};
  return fail(Errc::conflict, "Plugin \"" + key + "\" is being changed",
              "wait until that is done, and repeat");
}

Task<Plugins::Row> Plugins::find(std::string name) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<Row> {
    if (const auto id = core::PluginId::parse(name)) return store::find_plugin(s, *id);
    BERTH_TRY(auto found, store::find_plugin_by_key(s, name));
    if (found) return *std::move(found);
    return fail(Errc::plugin_not_found, "Plugin \"" + name + "\" is not installed",
                "'berth plugin list' shows the plugins");
  });
}

// The host knows what the current workers can do, so the catalog offers only what works.
void Plugins::refresh_catalog() {
  if (place_ == nullptr) return;
  Catalog::FromPlugins found;
  for (const plugins::PluginStatus& status : place_->host.list()) {
    const plugins::Manifest* const manifest = place_->host.manifest(status.id);
    if (manifest == nullptr) continue;
    const PinnedPlugin pin{.id = status.id, .version = manifest->version};
    found.plugins.emplace(status.plugin_key, pin);
    for (const plugins::DriverDeclaration& driver : manifest->drivers) {
      if (driver.kind != plugins::DriverRole::sandbox_provider) continue;
      // The first plugin with a key owns it.
      found.providers.emplace(driver.driver_key,
                              Catalog::PluginProvider{capability_of(driver, status), pin});
    }
  }
  catalog_.set_plugins(std::move(found));
}

Task<> Plugins::note(const core::Call& call, const core::PluginId& id, std::string what) {
  const Time now = services_.clock.now();
  const core::PluginLogLine line{.id = core::EventId::make(services_.random, now),
                                 .plugin_id = id,
                                 .message = what + " by " + call.who.actor_id(),
                                 .meta = bj::object{{"source", "host"}},
                                 .created_at = now};
  log::info("plugin.changed", {{"plugin", id}, {"what", what}, {"by", call.who.actor_id()}});
  co_return co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(keep_once(s, call, id));
    return store::insert_plugin_log(s, line);
  });
}

Task<> Plugins::discard(std::string folder_id) {
  const auto mark = [&](store::Session& s) {
    return store::use_plugin_folder(s, folder_id, PluginFolderUse::discarding,
                                    services_.clock.now());
  };
  BERTH_CO_DO(co_await services_.store.write(mark));
  BERTH_CO_DO(co_await place_->packages.discard(folder_id));
  co_return co_await services_.store.write(
      [&](store::Session& s) { return store::delete_plugin_folder(s, folder_id); });
}

Task<FetchedPackage> Plugins::fetch(PackageRequest request, std::optional<std::string> folder_id) {
  if (folder_id) {
    const Time now = services_.clock.now();
    const core::PluginFolder intention{
        .id = *folder_id, .node_id = node_, .created_at = now, .updated_at = now};
    BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) -> Result<> {
      BERTH_DO(expect_alive(s, node_));
      return store::insert_plugin_folder(s, intention);
    }));
    fault_point("plugin.fetch_intended");
  }
  Result<FetchedPackage> fetched =
      co_await place_->packages.fetch(std::move(request), folder_id.value_or(""));
  fault_point("plugin.fetch_acted");
  if (fetched || !folder_id) co_return fetched;
  const Result<> gone = co_await discard(*folder_id);
  if (!gone) log::warn("plugin.folder_left", {{"folder", *folder_id}});
  co_return fetched;
}

Task<Plugins::Row> Plugins::record_installed(const core::Call& call, PackageRequest request,
                                             FetchedPackage fetched,
                                             std::optional<std::string> folder_id) {
  const Time now = services_.clock.now();
  core::Plugin fresh{.id = core::PluginId::make(services_.random, now),
                     .plugin_key = fetched.manifest.id,
                     .package_name = request.name,
                     .source = request.source,
                     .folder_id = folder_id,
                     .installed_at = now,
                     .updated_at = now};
  describe(fresh, fetched);
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, node_));
    if (folder_id) BERTH_DO(store::use_plugin_folder(s, *folder_id, PluginFolderUse::held, now));
    BERTH_TRY(auto known, store::find_plugin_by_key(s, fresh.plugin_key));
    BERTH_DO(keep_once(s, call, known ? known->value.id : fresh.id));
    if (!known) return store::insert_plugin(s, fresh);
    if (known->value.status != PluginState::uninstalled) {
      return fail(
          Errc::plugin_exists,
          "Plugin \"" + fresh.plugin_key + "\" is already installed: " + known->value.id.str(),
          "upgrade it, or uninstall it first");
    }
    // Keeps its old id, so that what it left behind belongs to it again.
    core::Plugin again = fresh;
    again.id = known->value.id;
    again.status = known->value.status;
    again.install_order = known->value.install_order;
    return store::move_plugin(s, {std::move(again), known->version}, PluginEvent::installed_again,
                              std::nullopt, now);
  };
  Result<Row> saved = co_await services_.store.write(save);
  if (!saved && folder_id) {
    const Result<> gone = co_await discard(*folder_id);
    if (!gone) log::warn("plugin.folder_left", {{"folder", *folder_id}});
  }
  co_return saved;
}

Task<Plugins::Row> Plugins::activate(core::PluginId id) {
  BERTH_CO_TRY(Row row, co_await find(id.str()));
  fault_point("plugin.start_intended");
  Result<FetchedPackage> package = co_await place_->packages.verify(
      {.folder = row.value.package_path.value_or(""),
       .name = row.value.source == PluginSource::npm ? row.value.package_name : "",
       .origin = origin_of(row.value.source)});
  Result<> started = package ? Result<>{} : Result<>{std::unexpected(package.error())};
  if (started && package->manifest.id != row.value.plugin_key) {
    started = fail(Errc::plugin_manifest_invalid,
                   "the package now is of plugin \"" + package->manifest.id + "\"");
  }
  std::optional<core::PendingUpgrade> unseen;
  if (started) unseen = unseen_upgrade(row.value, *package);
  if (unseen) started = review_needed(row.value, *unseen);
  if (started) {
    plugins::InstalledPlugin plugin{
        .id = id,
        .manifest = package->manifest,
        .package = package->package,
        .egress = egress_rules(row.value.egress, place_->host.config().way_out)};
    started = co_await place_->host.start(std::move(plugin));
  }
  fault_point("plugin.start_acted");
  BERTH_CO_DO(co_await place_->services.settle());
  refresh_catalog();
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_TRY(Row now_row, store::find_plugin(s, id));
    const Time now = services_.clock.now();
    const PluginState status = now_row.value.status;
    if (started) {
      describe(now_row.value, *package);
      const bool waits = status == PluginState::upgrade_pending;
      if (waits) return store::update_plugin(s, std::move(now_row), now);
      return store::move_plugin(s, std::move(now_row), PluginEvent::activated, std::nullopt, now);
    }
    if (unseen) now_row.value.pending_upgrade = unseen;
    const std::string why = "Activation failed: " + started.error().message;
    if (status == PluginState::error || status == PluginState::disabled) {
      now_row.value.last_error = why;
      return store::update_plugin(s, std::move(now_row), now);
    }
    return store::move_plugin(s, std::move(now_row), PluginEvent::failed, why, now);
  };
  co_return co_await services_.store.write(save);
}

Task<PluginView> Plugins::install(core::Call call, InstallPlugin wanted) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(std::optional<PluginView> before, co_await answered(call));
  if (before) co_return *std::move(before);
  const PackageNaming naming =
      wanted.is_local_path.value_or(false) ? PackageNaming::by_path : PackageNaming::by_name;
  BERTH_CO_TRY(const PackageRequest request,
               PluginPackages::read_request(wanted.package_name, wanted.version, naming));
  BERTH_CO_TRY(const Turn turn, take_turn("install " + request.name));
  std::optional<std::string> folder_id;
  if (request.source != PluginSource::folder) {
    folder_id = core::PluginId::make(services_.random, services_.clock.now()).str();
  }
  BERTH_CO_TRY(FetchedPackage fetched, co_await fetch(request, folder_id));
  BERTH_CO_TRY(Row row, co_await record_installed(call, request, std::move(fetched), folder_id));
  fault_point("plugin.install_recorded");
  BERTH_CO_DO(
      co_await note(call, row.value.id, "version " + row.value.package_version + " installed"));
  const core::PluginId id = row.value.id;
  BERTH_CO_TRY(row, co_await activate(id));
  co_return view(call.who, row.value);
}

Task<std::vector<PluginView>> Plugins::list(core::Call call, std::optional<PluginState> status) {
  BERTH_CO_TRY(const auto rows, co_await services_.store.read([&](store::Session& s) {
    return store::list_plugins(s, status);
  }));
  std::vector<PluginView> out;
  for (const Row& row : rows) out.push_back(view(call.who, row.value));
  co_return out;
}

Task<PluginView> Plugins::get(core::Call call, std::string name) {
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  co_return view(call.who, row.value);
}

Task<PluginView> Plugins::enable(core::Call call, std::string name) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(std::optional<PluginView> before, co_await answered(call));
  if (before) co_return *std::move(before);
  BERTH_CO_TRY(Row row, co_await find(std::move(name)));
  const PluginState status = row.value.status;
  if (status != PluginState::disabled && status != PluginState::error &&
      status != PluginState::upgrade_pending) {
    co_return fail(Errc::conflict, "Plugin \"" + row.value.plugin_key + "\" is " +
                                       std::string{name_of(status)} + ", so it cannot be enabled");
  }
  BERTH_CO_TRY(const Turn turn, take_turn(row.value.plugin_key));
  BERTH_CO_DO(co_await note(call, row.value.id, "enabled"));
  if (row.value.pending_upgrade && status != PluginState::disabled) {
    core::PendingUpgrade next = *row.value.pending_upgrade;
    BERTH_CO_TRY(row, co_await apply_upgrade(std::move(row), std::move(next)));
  } else {
    const core::PluginId id = row.value.id;
    BERTH_CO_TRY(row, co_await activate(id));
  }
  co_return view(call.who, row.value);
}

Task<PluginView> Plugins::disable(core::Call call, std::string name, DisablePlugin wanted) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(std::optional<PluginView> before, co_await answered(call));
  if (before) co_return *std::move(before);
  BERTH_CO_TRY(Row row, co_await find(std::move(name)));
  BERTH_CO_TRY(const Turn turn, take_turn(row.value.plugin_key));
  BERTH_CO_TRY(row, co_await services_.store.write([&](store::Session& s) -> Result<Row> {
    BERTH_DO(keep_once(s, call, row.value.id));
    return store::move_plugin(s, row, PluginEvent::disabled, wanted.reason, services_.clock.now());
  }));
  fault_point("plugin.disable_intended");
  BERTH_CO_DO(co_await place_->host.stop(row.value.id));
  refresh_catalog();
  BERTH_CO_DO(co_await note(call, row.value.id, "disabled"));
  co_return view(call.who, row.value);
}

Task<PluginView> Plugins::restart(core::Call call, std::string name) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(std::optional<PluginView> before, co_await answered(call));
  if (before) co_return *std::move(before);
  BERTH_CO_TRY(Row row, co_await find(std::move(name)));
  if (row.value.status != PluginState::ready && row.value.status != PluginState::error) {
    co_return fail(Errc::conflict,
                   "Plugin \"" + row.value.plugin_key + "\" is " +
                       std::string{name_of(row.value.status)} + ", so it cannot be restarted",
                   "enable it: POST /api/plugins/{plugin}/enable");
  }
  BERTH_CO_TRY(const Turn turn, take_turn(row.value.plugin_key));
  BERTH_CO_DO(co_await note(call, row.value.id, "restarted"));
  BERTH_CO_DO(co_await place_->host.stop(row.value.id));
  const core::PluginId id = row.value.id;
  BERTH_CO_TRY(row, co_await activate(id));
  co_return view(call.who, row.value);
}

Task<Plugins::Row> Plugins::apply_upgrade(Row row, core::PendingUpgrade next) {
  const std::optional<std::string> old_folder = row.value.folder_id;
  row.value.package_version = next.version;
  row.value.manifest = next.manifest;
  row.value.package_path = next.package_path;
  row.value.folder_id = next.folder_id;
  row.value.pending_upgrade.reset();
  const core::PluginId id = row.value.id;
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, node_));
    const Time now = services_.clock.now();
    if (old_folder && old_folder != next.folder_id) {
      BERTH_DO(store::use_plugin_folder(s, *old_folder, PluginFolderUse::discarding, now));
    }
    return store::move_plugin(s, row, PluginEvent::activated, std::nullopt, now);
  };
  BERTH_CO_TRY(row, co_await services_.store.write(save));
  fault_point("plugin.upgrade_recorded");
  BERTH_CO_DO(co_await place_->host.stop(id));
  BERTH_CO_TRY(row, co_await activate(id));
  if (old_folder && old_folder != next.folder_id) BERTH_CO_DO(co_await discard(*old_folder));
  co_return row;
}

Task<PluginView> Plugins::upgrade(core::Call call, std::string name, UpgradePlugin wanted) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(std::optional<PluginView> before, co_await answered(call));
  if (before) co_return *std::move(before);
  BERTH_CO_TRY(Row row, co_await find(std::move(name)));
  const PluginState status = row.value.status;
  // A plugin that failed because its folder now requires more waits for the same decision.
  const bool waits_for_review = status == PluginState::upgrade_pending ||
                                (status == PluginState::error && row.value.pending_upgrade);
  if (status != PluginState::ready && !waits_for_review) {
    co_return fail(Errc::conflict,
                   "Plugin \"" + row.value.plugin_key + "\" is " + std::string{name_of(status)} +
                       ", so it cannot be upgraded",
                   "enable it first");
  }
  BERTH_CO_TRY(const Turn turn, take_turn(row.value.plugin_key));
  const bool accepts = wanted.accept_capabilities.value_or(false);
  std::optional<core::PendingUpgrade> next = row.value.pending_upgrade;
  if (!next || wanted.version) {
    PackageRequest request{row.value.source, row.value.package_name, wanted.version};
    if (request.source != PluginSource::npm && wanted.version) {
      co_return fail(Errc::plugin_install_failed,
                     "a version is for packages of the registry, not for " + request.name);
    }
    std::optional<std::string> folder_id;
    if (request.source != PluginSource::folder) {
      folder_id = core::PluginId::make(services_.random, services_.clock.now()).str();
    }
    BERTH_CO_TRY(FetchedPackage fetched, co_await fetch(std::move(request), folder_id));
    if (fetched.manifest.id != row.value.plugin_key) {
      if (folder_id) BERTH_CO_DO(co_await discard(*folder_id));
      co_return fail(Errc::plugin_manifest_invalid, "the package is of plugin \"" +
                                                        fetched.manifest.id + "\", not \"" +
                                                        row.value.plugin_key + "\"");
    }
    if (next && next->folder_id) BERTH_CO_DO(co_await discard(*next->folder_id));
    next =
        core::PendingUpgrade{.version = fetched.manifest.version,
                             .manifest = fetched.manifest.document,
                             .added_capabilities = added_capabilities(row.value, fetched.manifest),
                             .package_path = fetched.package.folder,
                             .folder_id = folder_id};
    row.value.pending_upgrade = next;
    const auto keep = [&](store::Session& s) -> Result<Row> {
      const Time now = services_.clock.now();
      if (folder_id) BERTH_DO(store::use_plugin_folder(s, *folder_id, PluginFolderUse::held, now));
      const bool waits =
          !next->added_capabilities.empty() && !accepts && status == PluginState::ready;
      return waits ? store::move_plugin(s, row, PluginEvent::review_needed, std::nullopt, now)
                   : store::update_plugin(s, row, now);
    };
    BERTH_CO_TRY(row, co_await services_.store.write(keep));
    fault_point("plugin.upgrade_intended");
  }
  if (!next->added_capabilities.empty() && !accepts) co_return review_needed(row.value, *next);
  BERTH_CO_DO(co_await note(call, row.value.id, "upgraded to version " + next->version));
  BERTH_CO_TRY(row, co_await apply_upgrade(std::move(row), *std::move(next)));
  co_return view(call.who, row.value);
}

Task<PluginView> Plugins::uninstall(core::Call call, std::string name, UninstallRequest request) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(Row row, co_await find(std::move(name)));
  BERTH_CO_TRY(const Turn turn, take_turn(row.value.plugin_key));
  const auto begin = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, node_));
    BERTH_TRY(const std::int64_t held,
              store::count_sandboxes_of(s, row.value.id, core::Reach::everything()));
    if (held > 0 && (!request.force || request.purge)) {
      return fail(
          Errc::plugin_in_use,
          "Plugin \"" + row.value.plugin_key + "\" holds " + std::to_string(held) + " sandboxes",
          request.force ? "leave out purge: its sandboxes know it by its id"
                        : "end their runs, or force it: they then wait until it is back");
    }
    if (row.value.status == PluginState::uninstalled) return row;
    return store::move_plugin(s, row, PluginEvent::uninstalled, std::nullopt,
                              services_.clock.now());
  };
  BERTH_CO_TRY(row, co_await services_.store.write(begin));
  fault_point("plugin.uninstall_intended");
  BERTH_CO_DO(co_await place_->host.stop(row.value.id));
  refresh_catalog();
  BERTH_CO_DO(co_await note(call, row.value.id, "uninstalled"));
  std::vector<std::string> folders;
  if (row.value.folder_id) folders.push_back(*row.value.folder_id);
  if (row.value.pending_upgrade && row.value.pending_upgrade->folder_id) {
    folders.push_back(*row.value.pending_upgrade->folder_id);
  }
  for (const std::string& folder : folders) BERTH_CO_DO(co_await discard(folder));
  row.value.folder_id.reset();
  row.value.pending_upgrade.reset();
  row.value.package_path.reset();
  if (request.purge) BERTH_CO_DO(place_->host.forget(row.value.id));
  const auto finish = [&](store::Session& s) -> Result<Row> {
    if (!request.purge) return store::update_plugin(s, row, services_.clock.now());
    BERTH_DO(store::delete_plugin(s, row.value.id));
    return row;
  };
  BERTH_CO_TRY(row, co_await services_.store.write(finish));
  co_return view(call.who, row.value);
}

// Only folders that this home's servers created: other folders are on another disk.
Task<> Plugins::sweep_folders() {
  struct Found {
    std::vector<core::PluginFolder> folders;
    std::set<std::string> wanted;
  };
  BERTH_CO_TRY(const Found found,
               co_await services_.store.read([&](store::Session& s) -> Result<Found> {
                 Found out;
                 BERTH_TRY(out.folders, store::list_plugin_folders(s));
                 BERTH_TRY(const auto rows, store::list_plugins(s, std::nullopt));
                 for (const Row& row : rows) {
                   if (row.value.folder_id) out.wanted.insert(*row.value.folder_id);
                   const auto& next = row.value.pending_upgrade;
                   if (next && next->folder_id) out.wanted.insert(*next->folder_id);
                 }
                 return out;
               }));
  for (const core::PluginFolder& folder : found.folders) {
    const bool ours = folder.node_id == node_ || former_.contains(folder.node_id);
    if (!ours || found.wanted.contains(folder.id)) continue;
    const Result<> gone = co_await discard(folder.id);
    if (!gone) {
      log::warn("plugin.folder_left", {{"folder", folder.id}, {"error", gone.error().message}});
    }
  }
  co_return Result<>{};
}

Task<> Plugins::start_all() {
  if (place_ == nullptr) co_return Result<>{};
  BERTH_CO_DO(co_await sweep_folders());
  BERTH_CO_TRY(const auto rows, co_await services_.store.read([&](store::Session& s) {
    return store::list_plugins(s, std::nullopt);
  }));
  for (const Row& row : rows) {
    if (row.value.status == PluginState::disabled) continue;
    const core::PluginId id = row.value.id;
    const Result<Row> started = co_await activate(id);
    if (!started) {
      log::warn("plugin.not_started", {{"plugin", id}, {"error", started.error().message}});
    } else if (started->value.last_error) {
      // The worker's output is in the plugin's own log.
      const std::string& why = *started->value.last_error;
      log::warn("plugin.not_started", {{"plugin", id}, {"error", why.substr(0, why.find('\n'))}});
    }
  }
  co_return Result<>{};
}

Task<> Plugins::stop() {
  if (place_ == nullptr) co_return Result<>{};
  place_->services.on_change({});
  co_return co_await place_->services.settle();
}

}  // namespace berth::engine
