#include "cli/commands/common.hpp"
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

struct Key {
  std::string key, type, says;
};

const std::vector<Key>& ssh_keys() {
  static const std::vector<Key> keys = {
      {"host", "text", "The machine; also --host"},
      {"port", "1 to 65535", "Its port, 22 unless said; also --port"},
      {"username", "text", "The account there; also --user"},
      {"remoteWorkspacePath", "path", "Folder of the workspaces there; also --path"},
      {"privateKey", "text", "A private key, which becomes a secret; also --key-file"},
      {"privateKeySecretRef", "object", "{\"type\":\"secret_ref\",\"secretId\":ID} in its place"},
      {"knownHosts", "text", "Host keys of the machine; also --known-hosts-file"},
      {"strictHostKeyChecking", "true|false", "Refuse an unknown host key: true unless said"}};
  return keys;
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
  const bj::object& fields = property.as_object();
  if (const bj::value* names = fields.if_contains("enum"); names != nullptr && names->is_array()) {
    return choices_text(names->get_array());
  }
  const bj::value* low = fields.if_contains("minimum");
  const bj::value* high = fields.if_contains("maximum");
  if (low != nullptr && high != nullptr) return number_text(*low) + " to " + number_text(*high);
  const bj::value* type = fields.if_contains("type");
  if (type == nullptr) return "JSON";
  return type->is_array() ? choices_text(type->get_array()) : text_of(property, "type");
}

bj::array rows_of(const bj::object& schema, const std::string& prefix) {
  bj::array rows;
  const bj::value* properties = schema.if_contains("properties");
  if (properties == nullptr || !properties->is_object()) return rows;
  for (const auto& [name, property] : properties->get_object()) {
    if (!property.is_object()) continue;
    const std::string key = prefix + std::string{name};
    if (property.get_object().contains("properties")) {
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
  const bj::value* providers =
      all.is_object() ? all.get_object().if_contains("sandboxProviders") : nullptr;
  const bj::value* found = providers != nullptr && providers->is_object()
                               ? providers->get_object().if_contains(provider)
                               : nullptr;
  if (found == nullptr || !found->is_object()) {
    return fail(Errc::bad_request, "no sandbox provider is called '" + provider + "'",
                "'berth env capabilities' lists the providers");
  }
  const bj::value* schema = found->get_object().if_contains("configSchema");
  if (schema == nullptr || !schema->is_object()) return bj::array{};
  return rows_of(schema->get_object(), "");
}

Result<> show_keys(Context& context, const KeyOptions& options) {
  bj::array rows;
  if (options.driver == name_of(core::DriverKind::ssh)) {
    for (const Key& key : ssh_keys()) {
      rows.push_back(bj::object{{"name", key.key}, {"type", key.type}, {"says", key.says}});
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
