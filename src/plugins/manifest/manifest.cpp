#include "plugins/manifest/manifest.hpp"

#include "base/strings.hpp"
#include "plugins/manifest/manifest_drivers.hpp"
#include "plugins/manifest/manifest_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace berth::plugins {
namespace {

using rules::each_object;
using rules::each_unique;
using rules::ObjectReader;
using rules::Presence;

constexpr auto known_keys = std::to_array<std::string_view>({"id",
                                                             "apiVersion",
                                                             "version",
                                                             "displayName",
                                                             "description",
                                                             "author",
                                                             "categories",
                                                             "capabilities",
                                                             "minimumHostVersion",
                                                             "entrypoints",
                                                             "environmentDrivers",
                                                             "minimumPaperclipVersion",
                                                             "jobs",
                                                             "webhooks",
                                                             "instanceConfigSchema",
                                                             "tools",
                                                             "database",
                                                             "apiRoutes",
                                                             "agents",
                                                             "projects",
                                                             "routines",
                                                             "skills",
                                                             "localFolders",
                                                             "objectReferences",
                                                             "launchers",
                                                             "ui"});
constexpr auto category_names =
    std::to_array<std::string_view>({"connector", "workspace", "automation", "ui"});
constexpr auto route_methods = std::to_array<std::string_view>({"GET", "POST", "PATCH", "DELETE"});
constexpr auto route_auths =
    std::to_array<std::string_view>({"board", "agent", "board-or-agent", "webhook"});
constexpr auto route_capability = std::to_array<std::string_view>({"api.routes.register"});

struct Need {
  std::string_view feature;
  std::string_view capability;
};
// Manifest fields that require a capability.
constexpr auto needs = std::to_array<Need>({
    {"environmentDrivers", "environment.drivers.register"},
    {"tools", "agent.tools.register"},
    {"jobs", "jobs.schedule"},
    {"webhooks", "webhooks.receive"},
    {"apiRoutes", "api.routes.register"},
    {"agents", "agents.managed"},
    {"projects", "projects.managed"},
    {"routines", "routines.managed"},
    {"skills", "skills.managed"},
    {"localFolders", "local.folders"},
    {"database", "database.namespace.migrate"},
    {"database", "database.namespace.read"},
    {"objectReferences", "external.objects.detect"},
    {"objectReferences", "external.objects.read"},
});
// The same for user interface slots and launchers, by kind.
constexpr auto ui_needs = std::to_array<Need>({
    {"sidebar", "ui.sidebar.register"},
    {"sidebarPanel", "ui.sidebar.register"},
    {"projectSidebarItem", "ui.sidebar.register"},
    {"routeSidebar", "ui.sidebar.register"},
    {"page", "ui.page.register"},
    {"detailTab", "ui.detailTab.register"},
    {"taskDetailView", "ui.detailTab.register"},
    {"dashboardWidget", "ui.dashboardWidget.register"},
    {"commentAnnotation", "ui.commentAnnotation.register"},
    {"toolbarButton", "ui.action.register"},
    {"globalToolbarButton", "ui.action.register"},
    {"contextMenuItem", "ui.action.register"},
    {"commentContextMenuItem", "ui.action.register"},
    {"settingsPage", "instance.settings.register"},
    {"companySettingsPage", "instance.settings.register"},
});

// Digits at the front, removed; false when there are none.
bool cut_number(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size() && is_digit(text[size])) ++size;
  text.remove_prefix(size);
  return size > 0;
}

bool cut_identifiers(std::string_view& text, std::string_view stop) {
  const std::size_t end = std::min(text.find_first_of(stop), text.size());
  const std::string_view all = text.substr(0, end);
  text.remove_prefix(end);
  const auto fits = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
  };
  return !all.empty() && std::ranges::all_of(all, fits) && all.front() != '.' &&
         all.back() != '.' && !all.contains("..");
}

std::optional<std::string> read_version(const ObjectReader& in, std::string_view key,
                                        Presence presence) {
  std::optional<std::string> text = in.text(key, presence, {1, 256});
  if (text && !is_semantic_version(*text)) {
    in.wrong(key, "semver: " + in_quotes(*text) + " is not a version such as 1.2.3 or 1.2.3-rc.1");
  }
  return text;
}

void read_identity(const ObjectReader& in, Manifest& out) {
  out.id = in.key_text("id", Presence::required).value_or("");
  const bj::value* api = in.find("apiVersion");
  if (api == nullptr) {
    in.wrong("apiVersion", "required: is missing");
  } else if (!api->is_number() || api->to_number<double>() != 1.0) {
    in.wrong("apiVersion", "api-version: is not the number 1");
  }
  out.version = read_version(in, "version", Presence::required).value_or("");
  out.display_name = in.text("displayName", Presence::required, {1, 100}).value_or("");
  out.description = in.text("description", Presence::required, {1, 500}).value_or("");
  out.author = in.text("author", Presence::required, {1, 200}).value_or("");
  out.minimum_host_version = read_version(in, "minimumHostVersion", Presence::optional);
  const auto old = read_version(in, "minimumPaperclipVersion", Presence::optional);
  if (old && out.minimum_host_version && *old != *out.minimum_host_version) {
    in.wrong("minimumPaperclipVersion", "alias: differs from minimumHostVersion");
  }
  if (!out.minimum_host_version) out.minimum_host_version = old;
}

// A list of names that must all be known.
std::vector<std::string> read_names(const ObjectReader& in, std::string_view key,
                                    bool (*is_known)(std::string_view)) {
  if (in.find(key) == nullptr) in.wrong(key, "required: is missing");
  std::vector<std::string> names = in.texts(key, {1, 200}, {1, 200});
  const JsonAt list{in.at(), key};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_known(names[i])) continue;
    in.issues().add(JsonAt{list, i}, "known-name: " + in_quotes(names[i]) + " is not known");
  }
  return names;
}

void read_entrypoints(const ObjectReader& in, Manifest& out) {
  const bj::object* object = in.child("entrypoints", Presence::required);
  if (object == nullptr) return;
  const JsonAt at{in.at(), "entrypoints"};
  const ObjectReader points{*object, at, in.issues()};
  out.worker_entrypoint = points.text("worker", Presence::required, {1}).value_or("");
  const auto ui = points.text("ui", Presence::optional, {1});
  const bj::value* places = in.find("ui");
  if (ui || places == nullptr || !places->is_object()) return;
  for (const std::string_view list : {"slots", "launchers"}) {
    const bj::value* entries = places->get_object().if_contains(list);
    if (entries != nullptr && entries->is_array() && !entries->get_array().empty()) {
      points.wrong("ui", "required: is missing, and the manifest has ui." + std::string{list});
      return;
    }
  }
}

void read_scheduled(const ObjectReader& in) {
  each_unique(in, "jobs", "jobKey", [](const ObjectReader& job) {
    job.text("jobKey", Presence::required, {1});
    job.text("displayName", Presence::required, {1});
    job.text("description", Presence::optional, {});
    const auto schedule = job.text("schedule", Presence::optional, {});
    if (schedule && !rules::is_cron(*schedule)) {
      job.wrong("schedule",
                "cron: " + in_quotes(*schedule) + " is not five fields of digits, *, /, - and ,");
    }
  });
  each_unique(in, "webhooks", "endpointKey", [](const ObjectReader& hook) {
    hook.text("endpointKey", Presence::required, {1});
    hook.text("displayName", Presence::required, {1});
    hook.text("description", Presence::optional, {});
  });
  each_unique(in, "tools", "name", [](const ObjectReader& tool) {
    tool.text("name", Presence::required, {1});
    tool.text("displayName", Presence::required, {1});
    tool.text("description", Presence::required, {1});
    tool.schema("parametersSchema", Presence::required);
  });
  each_unique(in, "apiRoutes", "routeKey", [](const ObjectReader& route) {
    route.text("routeKey", Presence::required, {1});
    route.one_of("method", Presence::required, route_methods);
    route.text("path", Presence::required, {1});
    route.one_of("auth", Presence::required, route_auths);
    route.one_of("capability", Presence::required, route_capability);
  });
}

void read_database(const ObjectReader& in) {
  const bj::object* object = in.child("database", Presence::optional);
  if (object == nullptr) return;
  const JsonAt at{in.at(), "database"};
  const ObjectReader database{*object, at, in.issues()};
  if (const auto slug = database.text("namespaceSlug", Presence::optional, {1, 40})) {
    const bool fits = std::ranges::all_of(
        *slug, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '_'; });
    if (!fits || slug->front() == '_') {
      database.wrong("namespaceSlug", "pattern: does not match ^[a-z0-9][a-z0-9_]*$");
    }
  }
  if (const auto folder = database.text("migrationsDir", Presence::required, {1})) {
    if (folder->starts_with('/') || folder->contains("..")) {
      database.wrong("migrationsDir", "relative-path: is absolute or leaves the package");
    }
  }
  database.texts("coreReadTables", {0, 1000}, {1});
}

// Fields that this host does not use must still be well formed.
void read_others(const ObjectReader& in) {
  for (const auto& [list, key] : {std::pair{"agents", "agentKey"},
                                  {"projects", "projectKey"},
                                  {"routines", "routineKey"},
                                  {"skills", "skillKey"},
                                  {"localFolders", "folderKey"},
                                  {"objectReferences", "key"},
                                  {"launchers", "id"}}) {
    each_unique(in, list, key, [](const ObjectReader&) {});
  }
}

bool has_any(const ObjectReader& in, std::string_view feature) {
  const bj::value* value = in.find(feature);
  if (value == nullptr) return false;
  return value->is_object() || (value->is_array() && !value->get_array().empty());
}

void check_needs(const ObjectReader& in, const Manifest& out) {
  const auto missing = [&](std::string_view capability, std::string_view feature) {
    in.wrong("capabilities", "capability-needed: " + std::string{capability} +
                                 " is missing, which " + std::string{feature} + " needs");
  };
  for (const auto& [feature, capability] : needs) {
    if (has_any(in, feature) && !out.has_capability(capability)) missing(capability, feature);
  }
  const auto check_place = [&](const ObjectReader& place, std::string_view key) {
    const bj::value* kind = place.find(key);
    if (kind == nullptr || !kind->is_string()) return;
    const std::string_view name{kind->get_string().data(), kind->get_string().size()};
    const auto* need = std::ranges::find(ui_needs, name, &Need::feature);
    if (need != ui_needs.end() && !out.has_capability(need->capability)) {
      missing(need->capability, name);
    }
  };
  const bj::object* ui = in.child("ui", Presence::optional);
  if (ui == nullptr) return;
  const JsonAt at{in.at(), "ui"};
  const ObjectReader places{*ui, at, in.issues()};
  each_unique(places, "slots", "id", [&](const ObjectReader& slot) { check_place(slot, "type"); });
  each_unique(places, "launchers", "id",
              [&](const ObjectReader& launcher) { check_place(launcher, "placementZone"); });
}

// Only the fields of the format: other keys are for other hosts.
bj::object known_part(const bj::object& document) {
  bj::object known;
  for (const auto& entry : document) {
    const std::string_view key{entry.key().data(), entry.key().size()};
    if (rules::is_among(known_keys, key)) known.emplace(key, entry.value());
  }
  rules::fold_login_alias(known);
  return known;
}

struct Version {
  std::array<std::uint64_t, 3> numbers{};
  std::string_view pre_release = {};
};

Version split(std::string_view text) {
  Version out;
  text = text.substr(0, text.find('+'));
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) out.pre_release = text.substr(dash + 1);
  text = text.substr(0, dash);
  for (std::uint64_t& number : out.numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    // A number that overflows is larger than any that fits.
    if (error == std::errc::result_out_of_range) number = ~std::uint64_t{0};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with('.')) text.remove_prefix(1);
  }
  return out;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

int compare_identifier(std::string_view left, std::string_view right) {
  if (is_number(left) != is_number(right)) return is_number(left) ? -1 : 1;
  if (is_number(left) && left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
  return left.compare(right);
}

int compare_pre_release(std::string_view left, std::string_view right) {
  if (left.empty() || right.empty())
    return static_cast<int>(left.empty()) - static_cast<int>(right.empty());
  while (!left.empty() && !right.empty()) {
    const std::string_view one = left.substr(0, left.find('.'));
    const std::string_view two = right.substr(0, right.find('.'));
    if (const int order = compare_identifier(one, two); order != 0) return order;
    left.remove_prefix(std::min(one.size() + 1, left.size()));
    right.remove_prefix(std::min(two.size() + 1, right.size()));
  }
  return static_cast<int>(!left.empty()) - static_cast<int>(!right.empty());
}

}  // namespace

const DriverDeclaration* Manifest::find_driver(std::string_view driver_key) const {
  const auto found = std::ranges::find(drivers, driver_key, &DriverDeclaration::driver_key);
  return found == drivers.end() ? nullptr : &*found;
}

bool Manifest::has_capability(std::string_view name) const {
  return capabilities.contains(std::string{name});
}

Result<Manifest> parse_manifest(const bj::value& document) {
  JsonIssues issues{UnknownKeys::ignore};
  const JsonAt root;
  if (!document.is_object()) {
    issues.add(root, "type: is not an object");
    return std::unexpected(std::move(issues).to_error(Errc::plugin_manifest_invalid));
  }
  const ObjectReader in{document.get_object(), root, issues};
  Manifest out{};
  read_identity(in, out);
  out.categories = read_names(in, "categories", [](std::string_view name) {
    return rules::is_among(category_names, name);
  });
  const std::vector<std::string> capabilities = read_names(in, "capabilities", is_known_capability);
  out.capabilities = {capabilities.begin(), capabilities.end()};
  read_entrypoints(in, out);
  out.instance_config_schema = in.schema("instanceConfigSchema", Presence::optional);
  out.drivers = rules::read_drivers(in, out.warnings);
  read_scheduled(in);
  read_database(in);
  read_others(in);
  check_needs(in, out);
  if (!issues.list().empty()) {
    return std::unexpected(std::move(issues).to_error(Errc::plugin_manifest_invalid));
  }
  out.document = known_part(document.get_object());
  return out;
}

bool is_semantic_version(std::string_view text) {
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return false;
      text.remove_prefix(1);
    }
    if (!cut_number(text)) return false;
  }
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!cut_identifiers(text, "+")) return false;
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (!cut_identifiers(text, "+")) return false;
  }
  return text.empty();
}

int compare_versions(std::string_view left, std::string_view right) {
  const Version one = split(left);
  const Version two = split(right);
  if (one.numbers != two.numbers) return one.numbers < two.numbers ? -1 : 1;
  return compare_pre_release(one.pre_release, two.pre_release);
}

Result<> check_host_version(const Manifest& manifest, std::string_view host_version) {
  const auto& least = manifest.minimum_host_version;
  if (!least || !is_semantic_version(host_version) || compare_versions(host_version, *least) >= 0) {
    return {};
  }
  return fail(Errc::plugin_manifest_invalid,
              "plugin " + manifest.id + " needs host version " + *least + " or newer, this is " +
                  std::string{host_version},
              "install an older version of the plugin, or a newer server");
}

}  // namespace berth::plugins
