#include "cli/objects.hpp"

#include "base/json/peek.hpp"

#include <algorithm>

namespace berth::cli {
namespace {

template <class Fits>
std::vector<const bj::value*> those(const bj::array& objects, Fits fits) {
  std::vector<const bj::value*> found;
  for (const bj::value& object : objects) {
    if (fits(object)) found.push_back(&object);
  }
  return found;
}

constexpr std::size_t listed_max = 20;

// Enough to choose by: the id, and the name, or without one its state and command.
std::string description_of(const bj::value& object) {
  std::string text = text_of(object, "id");
  if (const std::string name = text_of(object, "name"); !name.empty()) return text + "  " + name;
  if (const std::string state = text_of(object, "status"); !state.empty()) text += "  " + state;
  if (const std::string title = text_of(object, "title"); !title.empty()) {
    text += "  " + std::string{clipped(title, 40)};
  }
  return text;
}

std::unexpected<Error> ambiguous(const std::vector<const bj::value*>& found, std::string_view named,
                                 const Kind& kind) {
  Error error{.code = Errc::conflict,
              .message = "'" + std::string{named} + "' fits " + std::to_string(found.size()) +
                         " objects of the kind " + kind.noun,
              .remedy = "give more characters of either end of its id"};
  std::vector<std::string>& candidates = error.facts["candidates"];
  for (const bj::value* object : found) {
    if (candidates.size() == listed_max) break;
    candidates.push_back(description_of(*object));
  }
  return std::unexpected(std::move(error));
}

}  // namespace

std::string text_of(const bj::value& object, std::string_view key) {
  return peek<std::string>(object, key).value_or("");
}

bool is_end_of_id(std::string_view named, std::string_view id) {
  return !named.empty() && (id.starts_with(named) || id.ends_with(named));
}

Result<bj::value> choose(const bj::array& objects, std::string_view named, const Kind& kind) {
  const auto has = [&](std::string_view key) {
    return those(objects, [&](const bj::value& object) {
      return !named.empty() && text_of(object, key) == named;
    });
  };
  const auto has_end = [&](const bj::value& object) {
    return is_end_of_id(named, text_of(object, "id"));
  };
  for (const auto& found : {has("id"), has("name"), has("key"), those(objects, has_end)}) {
    if (found.size() == 1) return *found.front();
    if (found.size() > 1) return ambiguous(found, named, kind);
  }
  return fail(kind.missing, "no " + kind.noun + " is called '" + std::string{named} + "'",
              "'berth " + (kind.noun == "environment" ? std::string{"env"} : kind.noun) +
                  (kind.noun == "sandbox" ? " ls" : " list") + "' shows them all");
}

const Kind& company_kind() {
  static const Kind kind{.noun = "company",
                         .path = "companies",
                         .missing = Errc::company_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name"},
                                     {"STATUS", "status", Shown::state},
                                     {"MAY USE", "allowed"},
                                     {"DESCRIPTION", "description"},
                                     {"CREATED", "createdAt", Shown::moment}}};
  return kind;
}

const Kind& agent_kind() {
  static const Kind kind{.noun = "agent",
                         .path = "agents",
                         .missing = Errc::agent_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name"},
                                     {"ADAPTER", "adapterType"},
                                     {"STATUS", "status", Shown::state},
                                     {"ENVIRONMENT", "environmentName"},
                                     {"UPDATED", "updatedAt", Shown::moment}}};
  return kind;
}

const Kind& environment_kind() {
  static const Kind kind{.noun = "environment",
                         .path = "environments",
                         .missing = Errc::environment_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name"},
                                     {"DRIVER", "driver"},
                                     {"STATUS", "status", Shown::state},
                                     {"DESCRIPTION", "description"},
                                     {"UPDATED", "updatedAt", Shown::moment}}};
  return kind;
}

const Kind& secret_kind() {
  static const Kind kind{.noun = "secret",
                         .path = "secrets",
                         .missing = Errc::secret_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name"},
                                     {"KEY", "key"},
                                     {"STATUS", "status", Shown::state},
                                     {"VERSION", "latestVersion"},
                                     {"USED BY", "referenceCount"},
                                     {"ROTATED", "lastRotatedAt", Shown::moment}}};
  return kind;
}

const Kind& token_kind() {
  static const Kind kind{.noun = "token",
                         .path = "tokens",
                         .missing = Errc::token_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name"},
                                     {"KIND", "kind", Shown::plain, When::wide},
                                     {"ROLE", "role"},
                                     {"HINT", "hint", Shown::plain, When::wide},
                                     {"LAST USED", "lastUsedAt", Shown::moment},
                                     {"EXPIRES", "expiresAt", Shown::moment},
                                     {"REVOKED", "revokedAt", Shown::moment}}};
  return kind;
}

const Kind& run_kind() {
  static const Kind kind{.noun = "run",
                         .path = "heartbeat-runs",
                         .missing = Errc::run_not_found,
                         .columns = {{"ID", "id"},
                                     {"NAME", "name", Shown::plain, When::known},
                                     {"STATUS", "status", Shown::state},
                                     {"COMMAND", "title"},
                                     {"ENVIRONMENT", "environmentName"},
                                     {"AGENT", "agentName", Shown::plain, When::wide},
                                     {"EXIT", "exitCode"},
                                     {"ERROR", "errorCode", Shown::plain, When::wide},
                                     {"CREATED", "createdAt", Shown::moment}}};
  return kind;
}

const Kind& lease_kind() {
  static const Kind kind{.noun = "lease",
                         .path = "environment-leases",
                         .missing = Errc::lease_not_found,
                         .columns = {{"ID", "id"},
                                     {"STATUS", "status", Shown::state},
                                     {"ENVIRONMENT", "environmentName"},
                                     {"POLICY", "leasePolicy", Shown::plain, When::wide},
                                     {"RUN", "heartbeatRunId"},
                                     {"ACQUIRED", "acquiredAt", Shown::moment},
                                     {"NEXT", "nextStep"}}};
  return kind;
}

// What `berth sandbox ls` shows: leased sandboxes, by lease id, and those without a lease.
const Kind& sandbox_kind() {
  static const Kind kind{.noun = "sandbox",
                         .path = "sandboxes",
                         .missing = Errc::sandbox_not_found,
                         .columns = {{"ID", "id"},
                                     {"STATUS", "state", Shown::state},
                                     {"ENVIRONMENT", "environment"},
                                     {"AGENT", "agent", Shown::plain, When::wide},
                                     {"PROVIDER", "provider", Shown::plain, When::wide},
                                     {"ISOLATION", "level"},
                                     {"RUN", "heartbeatRunId"},
                                     {"ACQUIRED", "acquiredAt", Shown::moment},
                                     {"UNTIL", "expiresAt", Shown::moment}}};
  return kind;
}

}  // namespace berth::cli
