#include "plugin_kit/checks.hpp"

#include <boost/json/serialize.hpp>

namespace berth::plugin_kit {
namespace {

Result<bj::object> validated(Bench& bench, const bj::object& config) {
  BERTH_TRY(const bj::value answer,
            bench.ask("environmentValidateConfig", {{"config", config}}, quick));
  const bj::object* object = answer.if_object();
  const bj::value* ok = object != nullptr ? object->if_contains("ok") : nullptr;
  if (ok == nullptr || !ok->is_bool()) {
    return fail(Errc::plugin_protocol, "validate was answered without a boolean ok");
  }
  return *object;
}

Outcome accepts_its_config(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object answer, validated(bench, bench.subject().config));
  if (!answer.at("ok").get_bool()) {
    return failed("the config was refused: " + bj::serialize(answer) +
                  "; give a good one with --config");
  }
  const bj::value* normalized = answer.if_contains("normalizedConfig");
  BERTH_CHECK_THAT(normalized == nullptr || normalized->is_object(),
                   "normalizedConfig is not an object");
  return passed();
}

Outcome normalizes_once(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object first, validated(bench, bench.subject().config));
  const bj::value* normalized = first.if_contains("normalizedConfig");
  if (normalized == nullptr || !normalized->is_object()) return skipped("no normalizedConfig");
  BERTH_CHECK_TRY(const bj::object second, validated(bench, normalized->get_object()));
  const bj::value* again = second.if_contains("normalizedConfig");
  BERTH_CHECK_THAT(again != nullptr && *again == *normalized,
                   "normalizing " + bj::serialize(*normalized) + " again gives " +
                       (again != nullptr ? bj::serialize(*again) : std::string{"nothing"}));
  return passed();
}

// Sets each schema property once to a value of the wrong type.
Outcome says_what_is_wrong(Bench& bench) {
  const bj::value* properties = bench.subject().driver.config_schema.if_contains("properties");
  if (properties == nullptr || !properties->is_object()) return skipped("the schema is empty");
  for (const auto& [key, schema] : properties->get_object()) {
    bj::object config = bench.subject().config;
    config[key] = bj::array{bj::object{{"x", 1}}};
    BERTH_CHECK_TRY(const bj::object answer, validated(bench, config));
    if (answer.at("ok").get_bool()) continue;
    const bj::value* errors = answer.if_contains("errors");
    BERTH_CHECK_THAT(errors != nullptr && errors->is_array() && !errors->get_array().empty(),
                     "a config with a wrong " + std::string{key} + " is refused without errors");
  }
  return passed();
}

Outcome probes(Bench& bench) {
  BERTH_CHECK_TRY(const bj::value answer, bench.ask("environmentProbe", {}));
  const bj::object* object = answer.if_object();
  const bj::value* ok = object != nullptr ? object->if_contains("ok") : nullptr;
  BERTH_CHECK_THAT(ok != nullptr && ok->is_bool(), "probe was answered without a boolean ok");
  BERTH_CHECK_THAT(ok->get_bool(), "the probe failed: " + bj::serialize(answer).substr(0, 300));
  return passed();
}

// A host must not store or show a secret value.
Outcome hides_secrets(Bench& bench) {
  std::vector<std::string> secrets;
  for (const auto& [name, value] : bench.subject().credentials) secrets.push_back(value);
  const bj::value* properties = bench.subject().driver.config_schema.if_contains("properties");
  if (properties != nullptr && properties->is_object()) {
    for (const auto& [key, schema] : properties->get_object()) {
      const bool is_secret =
          schema.is_object() && text_at(schema.get_object(), "format") == "secret-ref";
      const std::string value = text_at(bench.subject().config, {key.data(), key.size()});
      if (is_secret) secrets.push_back(value);
    }
  }
  std::erase_if(secrets, [](const std::string& value) { return value.size() < 4; });
  if (secrets.empty()) return skipped("there is no secret in the config and no credential");
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(const bj::value probed, bench.ask("environmentProbe", {}));
  for (const std::string& secret : secrets) {
    BERTH_CHECK_THAT(bj::serialize(lease).find(secret) == std::string::npos,
                     "the lease holds a secret value");
    BERTH_CHECK_THAT(bj::serialize(probed).find(secret) == std::string::npos,
                     "the probe's answer holds a secret value");
  }
  return passed();
}

Outcome acquires(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const bj::value* metadata = lease.if_contains("metadata");
  BERTH_CHECK_THAT(metadata == nullptr || metadata->is_object(), "metadata is not an object");
  return passed();
}

Outcome acquires_apart(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object first, bench.acquire(bench.fresh_id()));
  BERTH_CHECK_TRY(const bj::object second, bench.acquire(bench.fresh_id()));
  const bool are_apart = text_at(first, "providerLeaseId") != text_at(second, "providerLeaseId");
  BERTH_CHECK_DO(bench.destroy_and_look(first));
  if (are_apart) BERTH_CHECK_DO(bench.destroy_and_look(second));
  const bj::value* reuse = bench.subject().config.if_contains("reuseLease");
  if (reuse != nullptr && reuse->is_bool() && reuse->get_bool()) {
    return skipped("the config asks for one sandbox per environment");
  }
  BERTH_CHECK_THAT(are_apart, "two runs were given the same sandbox");
  return passed();
}

Outcome realizes(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(
      const bj::value answer,
      bench.ask("environmentRealizeWorkspace", {{"lease", lease}, {"workspace", bj::object{}}}));
  const std::string cwd = answer.is_object() ? text_at(answer.get_object(), "cwd") : "";
  BERTH_CHECK_THAT(cwd.starts_with('/'), "the cwd '" + cwd + "' is not an absolute path");
  BERTH_CHECK_TRY(const bj::object ran,
                  bench.execute(lease, {{"command", "pwd"}, {"args", bj::array{}}, {"cwd", cwd}}));
  BERTH_CHECK_THAT(text_at(ran, "stdout").starts_with('/'), "no command can start in " + cwd);
  return passed();
}

Outcome ends_nothing_and_twice(Bench& bench) {
  for (const char* method : {"environmentReleaseLease", "environmentDestroyLease"}) {
    if (!bench.has(method)) continue;
    BERTH_CHECK_DO(bench.ask(method, {{"providerLeaseId", nullptr}}));
  }
  BERTH_CHECK_TRY(const bj::object lease, bench.acquire(bench.fresh_id()));
  BERTH_CHECK_DO(bench.destroy_and_look(lease));
  const Result<> again = bench.destroy(lease);
  if (!again) return failed("the second destroy: " + again.error().message);
  return passed();
}

Outcome releases(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.acquire(bench.fresh_id()));
  const bj::object named{{"providerLeaseId", lease.at("providerLeaseId")},
                         {"leaseMetadata", lease.contains("metadata") ? lease.at("metadata")
                                                                      : bj::value(bj::object{})}};
  BERTH_CHECK_DO(bench.ask("environmentReleaseLease", named));
  const auto again = bench.ask("environmentReleaseLease", named);
  if (!again) return failed("the second release: " + again.error().message);
  BERTH_CHECK_DO(bench.destroy_and_look(lease));
  return passed();
}

}  // namespace

std::vector<Check> config_checks() {
  return {
      {"config.accepted",
       "the given config is valid",
       "accept what the schema allows, or give a complete config with --config",
       accepts_its_config,
       Weight::required,
       {"environmentValidateConfig"}},
      {"config.stable",
       "a normalized config is valid and stays as it is",
       "normalize in one step: defaults, trimming and units must not change a second time",
       normalizes_once,
       Weight::required,
       {"environmentValidateConfig"}},
      {"config.errors",
       "a refused config comes with sentences that say why",
       "return errors: [\"...\"] with ok: false",
       says_what_is_wrong,
       Weight::required,
       {"environmentValidateConfig"}},
      {"config.probe",
       "a probe with the given config succeeds",
       "look at the probe's answer; give credentials with --env or --config",
       probes,
       Weight::required,
       {"environmentProbe"}},
  };
}

std::vector<Check> lease_checks() {
  return {
      {"lease.acquire",
       "acquire answers with a providerLeaseId",
       "return {providerLeaseId, metadata}",
       acquires,
       Weight::required,
       {"environmentAcquireLease"}},
      {"lease.apart",
       "two runs get two sandboxes",
       "name a sandbox after its run",
       acquires_apart,
       Weight::required,
       {"environmentAcquireLease"}},
      {"lease.realize",
       "realize answers with an absolute folder in which commands start",
       "create the folder, and return its path as cwd",
       realizes,
       Weight::required,
       {"environmentAcquireLease", "environmentRealizeWorkspace", "environmentExecute"}},
      {"lease.end",
       "destroy may be repeated, and without an id does nothing",
       "treat what is gone as destroyed: a host repeats what it has no answer to",
       ends_nothing_and_twice,
       Weight::required,
       {"environmentAcquireLease", "environmentDestroyLease"}},
      {"lease.release",
       "release may be repeated, and destroy may follow it",
       "treat what is gone as released",
       releases,
       Weight::required,
       {"environmentAcquireLease", "environmentReleaseLease"}},
      {"lease.secrets",
       "no secret value is in a lease or a probe's answer",
       "put ids and names into metadata, never values of secret fields",
       hides_secrets,
       Weight::required,
       {"environmentAcquireLease", "environmentProbe"}},
  };
}

}  // namespace berth::plugin_kit
