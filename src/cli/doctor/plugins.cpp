#include "base/json/peek.hpp"
#include "cli/doctor/check.hpp"
#include "cli/objects.hpp"

namespace berth::cli::doctor {
namespace {

bool keeps_private_networks(const bj::object& plugin) {
  return peek<bool>(peek<bj::object>(plugin, "egress"), "keptPrivate").value_or(false);
}

}  // namespace

std::vector<Finding> judge_plugins(const bj::value& list) {
  std::vector<Finding> findings;
  if (!list.is_array()) return findings;
  for (const bj::value& one : list.get_array()) {
    if (!one.is_object()) continue;
    const std::string key = text_of(one, "pluginKey");
    if (keeps_private_networks(one.get_object())) {
      findings.push_back({"plugin " + key, Verdict::warn,
                          "reaches private networks, kept from before the upgrade",
                          "berth plugin egress " + key + " --allow RANGE:PORT, or --none"});
    }
    const std::string isolation = text_of(one, "isolation");
    if (isolation == "weak" || isolation == "none") {
      findings.push_back({"plugin " + key, Verdict::warn, "its box is " + isolation,
                          "berth plugin get " + key + " names what is missing"});
    }
  }
  return findings;
}

}  // namespace berth::cli::doctor
