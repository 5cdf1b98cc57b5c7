#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "core/enums.hpp"

#include <sstream>

// The keys that --set and --config accept.
namespace berth::cli {
namespace {

struct KeyOptions {
  std::string driver;
  std::string provider;
};

// The options of 'berth env create' that set a key of ssh.
struct KeyFlag {
  std::string_view key, flag;
};
constexpr KeyFlag ssh_flags[] = {
    {"host", "--host"},           {"port", "--port"},
    {"username", "--user"},       {"remoteWorkspacePath", "--path"},
    {"privateKey", "--key-file"}, {"knownHosts", "--known-hosts-file"}};

std::string flag_for(std::string_view key) {
  const auto* const found = std::ranges::find(ssh_flags, key, &KeyFlag::key);
  return found != std::end(ssh_flags) ? "; also " + std::string{found->flag} : "";
}

std::string choices_text(const bj::array& list) {
  std::string out;
  for (const bj::value& item : list) {
    out += (out.empty() ? "" : "|") +
           (item.is_string() ? std::string{item.get_string()} : bj::serialize(item));
  }
  return out;
}

// 0.01, and not 1E-2 as JSON may write it.
std::string number_text(const bj::value& number) {
  if (!number.is_double()) return bj::serialize(number);
  std::ostringstream text;
  text << number.get_double();
  return text.str();
}

std::string type_of(const bj::value& property) {
  if (const auto names = peek<bj::array>(property, "enum")) return choices_text(*names);
  const auto low = peek<bj::value>(property, "minimum");
  const auto high = peek<bj::value>(property, "maximum");
  if (low && high) return number_text(*low) + " to " + number_text(*high);
  const auto type = peek<bj::value>(property, "type");
  if (!type) return "JSON";
  return type->is_array() ? choices_text(type->get_array()) : text_of(property, "type");
}

bj::array rows_of(const bj::object& schema, const std::string& prefix) {
  bj::array rows;
  const bj::object* properties = object_in(schema, "properties");
  if (properties == nullptr) return rows;
  for (const auto& [name, property] : *properties) {
    if (!property.is_object()) continue;
    const std::string key = prefix + std::string{name};
    const bool is_secret = text_of(property, "format") == "secret-ref";
    if (property.get_object().contains("properties") && !is_secret) {
      for (const bj::value& inner : rows_of(property.get_object(), key + "."))
        rows.push_back(inner);
      continue;
    }
    std::string says = text_of(property, "description");
    if (says.empty()) says = text_of(property, "title");
    rows.push_back(bj::object{{"name", key}, {"type", type_of(property)}, {"says", says}});
  }
  return rows;
}

// The schema of a third-party provider is on the server.
Result<bj::array> keys_of_provider(Context& context, const std::string& provider) {
  if (provider == core::linux_provider) return rows_of(core::linux_config_schema(), "");
  BERTH_TRY(const std::string path, context.company_path("environments/capabilities"));
  BERTH_TRY(const bj::value all, context.get(path));
  const auto found = peek<bj::object>(peek<bj::object>(all, "sandboxProviders"), provider);
  if (!found) {
    return fail(Errc::bad_request, "no sandbox provider is called '" + provider + "'",
                "'berth env capabilities' lists the providers");
  }
  return rows_of(peek<bj::object>(*found, "configSchema").value_or(bj::object{}), "");
}

Result<> show_keys(Context& context, const KeyOptions& options) {
  bj::array rows;
  if (options.driver == name_of(core::DriverKind::ssh)) {
    rows = rows_of(core::driver_config_schema(core::DriverKind::ssh), "");
    for (bj::value& row : rows) {
      row.as_object()["says"] = text_of(row, "says") + flag_for(text_of(row, "name"));
    }
  } else if (options.driver == name_of(core::DriverKind::sandbox)) {
    BERTH_TRY(rows, keys_of_provider(context, options.provider));
  } else {
    context.printer().note("the driver " + options.driver + " needs no keys");
  }
  context.printer().list(rows, {{"KEY", "name"}, {"VALUE", "type"}, {"MEANS", "says"}});
  return {};
}

}  // namespace

void add_key_commands(CommandTree& tree, CLI::App& environments) {
  const auto options = std::make_shared<KeyOptions>();
  options->provider = core::linux_provider;
  CLI::App& app = tree.leaf(environments, "keys", "list the config keys that --set takes",
                            "berth env keys sandbox",
                            [options](Context& context) { return show_keys(context, *options); });
  const auto check = [](const std::string& given) {
    return parse_name<core::DriverKind>(given)
               ? std::string{}
               : "'" + given + "' is not one of " + names_of<core::DriverKind>();
  };
  app.add_option("driver", options->driver, "local, ssh, sandbox or plugin")
      ->required()
      ->check(check);
  app.add_option("--provider", options->provider, "sandbox: of this provider; linux unless said")
      ->type_name("PROVIDER");
}

}  // namespace berth::cli
