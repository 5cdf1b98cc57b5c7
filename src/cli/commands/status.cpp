#include "cli/tree.hpp"
#include "cli/version.hpp"

namespace berth::cli {
namespace {

void show_servers(Context& context, const bj::array& servers) {
  static const std::vector<Column> columns{{"SERVER", "name"},
                                           {"URL", "url"},
                                           {"SINCE", "startedAt", Shown::moment},
                                           {"HEARTBEAT", "heartbeatAt", Shown::moment},
                                           {"VERSION", "version"}};
  context.printer().text("\n");
  context.printer().list(servers, columns);
}

Result<> status(Context& context) {
  BERTH_TRY(const Client* server, context.client());
  BERTH_TRY(const bj::value health, context.get("/api/health"));
  bj::object out{{"server", server->server().url()}};
  if (health.is_object()) {
    for (const auto& [key, value] : health.get_object()) out[key] = value;
  }
  const Result<bj::value> ready = context.get("/api/health/ready");
  if (ready && ready->is_object()) {
    for (const auto& [key, value] : ready->get_object()) {
      if (!out.contains(key)) out[key] = value;
    }
  }
  out["ready"] = ready.has_value();
  if (!ready) out["problem"] = ready.error().message;
  const Result<bj::array> companies = context.list("/api/companies");
  if (companies) {
    bj::array names;
    for (const bj::value& company : *companies) names.emplace_back(text_of(company, "name"));
    out["companies"] = std::move(names);
  }
  // A caller without permission to list them gets the rest.
  const Result<bj::value> servers = context.get("/api/instance/nodes");
  const bool has_servers = servers && servers->is_array();
  const bool is_table = context.printer().look() != Look::json;
  if (has_servers && !is_table) out["servers"] = *servers;
  context.printer().object(out);
  if (has_servers && is_table) show_servers(context, servers->get_array());
  if (!ready) return std::unexpected(ready.error());
  // A caller that may not list companies still sees that the server is up, and why the list is
  // missing.
  if (!companies) return std::unexpected(companies.error());
  return {};
}

}  // namespace

void add_status_commands(CommandTree& tree) {
  tree.leaf(tree.root(), "status", "show whether the server is well", "berth status", status);
  tree.leaf(
      tree.root(), "version", "print the version of this program", "berth version",
      [](Context& context) -> Result<> {
        if (context.printer().look() == Look::json && context.flags().json) {
          context.printer().object(bj::object{{"version", bj::string(version())}});
        } else {
          context.printer().text("berth " + std::string{version()} + "\n");
        }
        return {};
      },
      Needs::nothing);
}

}  // namespace berth::cli
