#include "cli/doctor/walls.hpp"
#include "cli/tree.hpp"

#include <algorithm>

namespace berth::cli {
namespace doctor {

std::vector<Finding> examine(const Machine& machine) {
  std::vector<Finding> findings = {check_system(),
                                   check_kernel(),
                                   check_open_files(),
                                   check_clock(),
                                   check_user_namespaces(),
                                   check_overlayfs(),
                                   check_cgroups(),
                                   check_landlock(),
                                   check_seccomp(),
                                   check_kvm(),
                                   check_ssh(),
                                   check_git(),
                                   check_node(),
                                   check_configuration(machine)};
  // Without settings there is nothing to examine.
  if (machine.config_error) return findings;
  for (const auto check : {check_keeper, check_home, check_master_key, check_database, check_listen,
                           check_tls, check_trust}) {
    findings.push_back(check(machine));
  }
  for (Finding& finding : check_sandbox(machine)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace doctor

namespace {

using core::Wall;
using core::WallState;
using doctor::Finding;
using doctor::Verdict;

// The server creates a sandbox before it responds.
constexpr ClientLimits patient{.connect = std::chrono::milliseconds{2'000},
                               .answer = std::chrono::milliseconds{30'000}};

Paint paint_of(WallState state) {
  switch (state) {
    case WallState::stands: return Paint::green;
    case WallState::weak: return Paint::yellow;
    case WallState::open: return Paint::red;
  }
  return Paint::none;
}

Paint paint_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return Paint::green;
    case Verdict::note: return Paint::dim;
    case Verdict::warn: return Paint::yellow;
    case Verdict::fail: return Paint::red;
  }
  return Paint::none;
}

void print(const Printer& printer, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::string verdict{name_of(finding.verdict)};
    verdict.resize(5, ' ');
    std::string name = finding.check;
    name.resize(std::max<std::size_t>(name.size(), 17), ' ');
    printer.text((printer.colour() ? painted(verdict, paint_of(finding.verdict)) : verdict) + " " +
                 name + printable(finding.says) + "\n");
    if (finding.verdict == Verdict::ok || finding.remedy.empty()) continue;
    printer.text("      fix: " + printable(finding.remedy) + "\n");
  }
}

void print(const Printer& printer, const std::vector<Wall>& walls, const std::string& source) {
  printer.text("\nWalls, as " + printable(source) + "\n");
  for (const Wall& wall : walls) {
    std::string state{name_of(wall.state)};
    state.resize(6, ' ');
    std::string title = wall.title;
    title.resize(std::max<std::size_t>(title.size(), 26), ' ');
    printer.text((printer.colour() ? painted(state, paint_of(wall.state)) : state) + " " +
                 printable(title) + " " + printable(wall.reason) + "\n");
    if (wall.remedy) printer.text("       fix: " + printable(*wall.remedy) + "\n");
  }
}

// A running server knows its own mode and user, and what its database allows. Without one, or
// without an instance administrator's key, this machine and these settings are examined.
struct SeenWalls {
  std::vector<Wall> walls = {};
  std::string source = {};
};
Result<std::vector<Wall>> ask_for_walls(Context& context, const doctor::Machine& machine) {
  BERTH_TRY(Endpoint server, parse_endpoint(machine.server_url));
  BERTH_TRY(std::optional<Secret> token,
            discover_token(context.flags(), context.console().variables, machine.settings.home));
  const Client client{std::move(server), std::move(token), patient};
  BERTH_TRY(const Answer answer, client.send({.path = "/api/instance/walls"}));
  return decode<std::vector<Wall>>(answer.body, UnknownKeys::ignore);
}

SeenWalls look_at_walls(Context& context, const doctor::Machine& machine) {
  if (Result<std::vector<Wall>> walls = ask_for_walls(context, machine)) {
    return {*std::move(walls), "the server at " + machine.server_url + " reports them"};
  }
  if (machine.config_error) return {};
  return {doctor::examine_walls(machine), "a server with these settings would have them"};
}

// One list for programs: a wall is a finding with more fields.
bj::array in_json(const std::vector<Finding>& findings, const std::vector<Wall>& walls) {
  bj::array all = encode(findings).as_array();
  for (const Wall& wall : walls) {
    const Finding finding{.check = "wall",
                          .verdict = wall.state == WallState::stands ? Verdict::ok : Verdict::warn,
                          .says = wall.title + ": " + wall.reason,
                          .remedy = wall.remedy.value_or("")};
    bj::object shown = encode(finding).as_object();
    shown["wall"] = encode(wall);
    all.push_back(std::move(shown));
  }
  return all;
}

Result<> run_doctor(Context& context) {
  if (!context.flags().config_error) context.adopt_server_home();
  doctor::Machine machine{.settings = context.config().settings,
                          .config_error = context.flags().config_error,
                          .server_url = {}};
  BERTH_TRY(const Discovered server,
            discover_server(context.flags(), context.console().variables, machine.settings.home));
  machine.server_url = server.url;
  if (server.source == "default") machine.server_url = "http://" + machine.settings.listen;
  std::vector<Finding> findings = doctor::examine(machine);
  if (auto retention = doctor::check_retention(machine)) findings.push_back(*std::move(retention));
  const SeenWalls seen = look_at_walls(context, machine);
  // A server that is down, or that rejects the caller, cannot report companies.
  const bool answers = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.check == "server" && finding.verdict == Verdict::ok;
  });
  const Result<bj::array> companies = answers ? context.list("/api/companies") : bj::array{};
  for (Finding& finding : doctor::judge_kept(companies.value_or(bj::array{}))) {
    findings.push_back(std::move(finding));
  }
  // A server that is down, or that rejects the caller, lists none.
  if (const auto plugins = context.get("/api/plugins")) {
    for (Finding& finding : doctor::judge_plugins(*plugins)) {
      findings.push_back(std::move(finding));
    }
  }
  if (context.printer().look() == Look::json) {
    context.printer().object(in_json(findings, seen.walls));
  } else {
    print(context.printer(), findings);
    if (!seen.walls.empty()) print(context.printer(), seen.walls, seen.source);
  }
  const auto failed = std::ranges::count(findings, Verdict::fail, &Finding::verdict);
  if (failed == 0) return {};
  return fail(Errc::config_invalid,
              std::to_string(failed) + (failed == 1 ? " check" : " checks") + " failed",
              "mend what is marked 'fail' above");
}

}  // namespace

void add_doctor_commands(CommandTree& tree) {
  tree.leaf(tree.root(), "doctor", "show what this machine offers and what is wrong with it",
            "berth doctor", run_doctor, Needs::nothing);
}

}  // namespace berth::cli
