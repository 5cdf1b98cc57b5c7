#include "cli/tree.hpp"
#include "cli/version.hpp"

namespace berth::cli {
namespace {

void show_servers(Session& session, const bj::array& servers) {
  static const std::vector<Column> columns{{"SERVER", "name"},
                                           {"URL", "url"},
                                           {"SINCE", "startedAt", Shown::moment},
                                           {"HEARTBEAT", "heartbeatAt", Shown::moment},
                                           {"VERSION", "version"}};
  session.printer().text("\n");
  session.printer().list(servers, columns);
}

Result<> status(Session& session) {
  BERTH_TRY(const Client* server, session.client());
  BERTH_TRY(const bj::value health, session.get("/api/health"));
  bj::object out{{"server", server->server().url()}};
  if (health.is_object()) {
    for (const auto& [key, value] : health.get_object()) out[key] = value;
  }
  const Result<bj::value> ready = session.get("/api/health/ready");
  if (ready && ready->is_object()) {
    for (const auto& [key, value] : ready->get_object()) {
      if (!out.contains(key)) out[key] = value;
    }
  }
  out["ready"] = ready.has_value();
  if (!ready) out["problem"] = ready.error().message;
  const Result<bj::array> companies = session.list("/api/companies");
  if (companies) {
    bj::array names;
    for (const bj::value& company : *companies) names.emplace_back(text_of(company, "name"));
    out["companies"] = std::move(names);
  }
  // Who may not ask for them learns the rest.
  const Result<bj::value> servers = session.get("/api/instance/nodes");
  const bool has_servers = servers && servers->is_array();
  const bool is_table = session.printer().look() != Look::json;
  if (has_servers && !is_table) out["servers"] = *servers;
  session.printer().object(out);
  if (has_servers && is_table) show_servers(session, servers->get_array());
  if (!ready) return std::unexpected(ready.error());
  // Who may not list companies still learns that the server is there, and why the list is missing.
  if (!companies) return std::unexpected(companies.error());
  return {};
}

}  // namespace

void add_status_commands(CommandTree& tree) {
  tree.leaf(tree.root(), "status", "show whether the server is well", "berth status", status);
  tree.leaf(
      tree.root(), "version", "print the version of this program", "berth version",
      [](Session& session) -> Result<> {
        if (session.printer().look() == Look::json && session.flags().json) {
          session.printer().object(bj::object{{"version", bj::string(version())}});
        } else {
          session.printer().text("berth " + std::string{version()} + "\n");
        }
        return {};
      },
      Needs::nothing);
}

}  // namespace berth::cli
