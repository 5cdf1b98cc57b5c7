#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/place.hpp"
#include "cli/run/port_forward.hpp"
#include "cli/run/verdict.hpp"
#include "core/lifecycle.hpp"

#include <poll.h>

#include <ostream>

namespace berth::cli {
namespace {

constexpr int poll_interval_ms = 500;

constexpr auto port_example = R"(berth sandbox port 44f87a21 8080

Prints an address of this machine's loopback that a browser can open. Each connection to it goes
through the server to port 8080 of the sandbox, whatever protocol it speaks, until Ctrl-C.)";

struct PortOptions {
  std::string named;
  std::uint16_t port = 0;
  std::uint16_t listen = 0;
};

Result<> forward(Context& context, const PortOptions& options) {
  BERTH_TRY(const std::string id, find_place(context, options.named));
  BERTH_TRY(const Client* const server, context.client());
  // Without a lease there, listening here would only refuse each connection.
  BERTH_TRY(const bj::value lease, context.get("/api/environment-leases/" + id));
  const auto state = parse_name<core::LeaseState>(text_of(lease, "status"));
  if (state && core::is_final(*state)) {
    return fail(Errc::conflict,
                "lease " + id + " holds no place: it is " + text_of(lease, "status"),
                "'berth sandbox ls' shows those that are held");
  }
  const auto used = context.get("/api/environment-leases/" + id + "/usage");
  if (!used && used.error().code == Errc::conflict) return std::unexpected(used.error());
  BERTH_TRY(const int signal, forward_port(*server, context.console(),
                                           {.lease_id = id,
                                            .port = options.port,
                                            .local_port = options.listen,
                                            .quiet = context.flags().quiet}));
  context.end_with(exit_signal_base + signal);
  return {};
}

void add_port(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<PortOptions>();
  CLI::App& app =
      tree.leaf(group, "port", "reach a port of a sandbox from this machine", port_example,
                [options](Context& context) { return forward(context, *options); });
  app.add_option("place", options->named, place_words)->required();
  app.add_option("port", options->port, "the port inside")->required()->check(CLI::Range(1, 65535));
  app.add_option("--listen", options->listen, "the port here; else one that is free")
      ->type_name("PORT");
}

struct EgressOptions {
  std::string named;
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  bool replace = false;
  bool follow = false;
};

// One line per decision; programs get JSON lines.
void print_decision(Context& context, const bj::value& entry) {
  std::ostream& out = context.console().out;
  if (context.printer().look() == Look::json) {
    out << bj::serialize(entry) << "\n";
    return;
  }
  const auto port = peek<bj::value>(entry, "port");
  out << printable(text_of(entry, "at")) << "  " << printable(text_of(entry, "decision")) << "  "
      << printable(text_of(entry, "method")) << " " << printable(text_of(entry, "host")) << ":"
      << (port ? bj::serialize(*port) : "") << printable(text_of(entry, "path")) << "  "
      << printable(text_of(entry, "rule")) << "\n";
}

Result<> show_egress(Context& context, const std::string& path, bool follow) {
  std::int64_t offset = 0;
  while (true) {
    BERTH_TRY(const bj::value page, context.get(path + "?offset=" + std::to_string(offset)));
    const bj::array& entries = page.at("entries").as_array();
    for (const bj::value& entry : entries) print_decision(context, entry);
    context.console().out << std::flush;
    const std::int64_t next = page.at("nextOffset").to_number<std::int64_t>();
    const bool is_end = next == std::exchange(offset, next);
    if (!context.console().out.good() || (is_end && !follow)) return {};
    if (is_end) ::poll(nullptr, 0, poll_interval_ms);
  }
}

// The log ends with its lease. What was denied is among the events of a run that failed.
Result<> with_events_of_run(Context& context, const std::string& lease, Result<> shown) {
  if (shown || shown.error().code != Errc::conflict) return shown;
  const Result<bj::value> found = context.get("/api/environment-leases/" + lease);
  const std::string run = found ? text_of(*found, "heartbeatRunId") : "";
  if (run.empty()) return shown;
  shown.error().remedy = "'berth run events " + run + "' lists what was denied, if it failed";
  return shown;
}

Result<> lease_egress(Context& context, const EgressOptions& options) {
  BERTH_TRY(const std::string id, find_place(context, options.named));
  const std::string path = "/api/environment-leases/" + id + "/egress";
  if (options.allow.empty() && options.deny.empty() && !options.replace) {
    return with_events_of_run(context, id, show_egress(context, path, options.follow));
  }
  bj::object policy;
  if (!options.replace) {
    BERTH_TRY(const bj::value now, context.get(path));
    policy = now.at("policy").as_object();
  }
  const auto add = [&](const char* key, const std::vector<std::string>& rules) {
    if (rules.empty()) return;
    bj::value& list = policy[key];
    if (!list.is_array()) list = bj::array{};
    for (const std::string& rule : rules) list.as_array().push_back(bj::string(rule));
  };
  add("allow", options.allow);
  add("deny", options.deny);
  BERTH_TRY(const bj::value changed,
            context.send({.method = "PUT", .path = path, .body = std::move(policy)}));
  context.printer().object(changed.at("policy"));
  return {};
}

void add_egress(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<EgressOptions>();
  CLI::App& app =
      tree.leaf(group, "egress", "what a sandbox has asked to reach; change what it may",
                "berth sandbox egress 44f87a21 -f\n"
                "berth sandbox egress 44f87a21 --allow pypi.org --allow '*.example.org'",
                [options](Context& context) { return lease_egress(context, *options); });
  app.add_option("place", options->named, place_words)->required();
  app.add_flag("-f,--follow", options->follow, "go on as it happens");
  app.add_option("--allow", options->allow, "let it reach this too: host, *.host, host:port, cidr")
      ->type_name("RULE");
  app.add_option("--deny", options->deny, "and not this")->type_name("RULE");
  app.add_flag("--replace", options->replace, "in place of the rules that it has");
}

}  // namespace

void add_sandbox_lease_commands(CommandTree& tree, CLI::App& group) {
  add_port(tree, group);
  add_egress(tree, group);
}

}  // namespace berth::cli
