#include "cli/doctor/check.hpp"
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
  // Without settings there is nothing to look at.
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

using doctor::Finding;
using doctor::Verdict;

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

Result<> run_doctor(Session& session) {
  doctor::Machine machine{.settings = session.config().settings,
                          .config_error = session.flags().config_error,
                          .server_url = {}};
  BERTH_TRY(const Discovered server,
            discover_server(session.flags(), session.console().variables, machine.settings.home));
  machine.server_url = server.url;
  if (server.source == "default") machine.server_url = "http://" + machine.settings.listen;
  const std::vector<Finding> findings = doctor::examine(machine);
  if (session.printer().look() == Look::json) {
    session.printer().object(encode(findings));
  } else {
    print(session.printer(), findings);
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
