#include "engine/run_secrets.hpp"

#include "core/bindings.hpp"
#include "engine/journal.hpp"
#include "engine/secret_seals.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"

#include <charconv>
#include <set>

namespace berth::engine {
namespace {

constexpr std::string_view variable_path = "env.";

struct Readable {
  core::SecretRecord secret;
  core::SecretBinding binding;
};

std::unexpected<Error> not_run_bound() {
  return fail(Errc::forbidden, "only an agent in one of its runs may ask for its secrets",
              "use the token that the run's process finds in BERTH_API_KEY");
}

Result<core::Run> running_run(store::Session& session, const core::Caller& who) {
  if (!who.run_id || !who.agent_id || !who.company_id) return not_run_bound();
  BERTH_TRY(auto row, store::find_run(session, core::Reach::only(*who.company_id), *who.run_id));
  if (row.value.agent_id != who.agent_id) return not_run_bound();
  if (row.value.status == core::RunState::running) return std::move(row.value);
  return fail(Errc::forbidden, "run " + who.run_id->str() + " is " +
                                   std::string{name_of(row.value.status)} +
                                   ", and secrets are read only while it is running");
}

// Each secret once. The agent's own binding stands above that of the environment, as its variable
// does.
Result<std::vector<Readable>> readable_secrets(store::Session& session, const core::Run& run) {
  using core::SecretTarget;
  BERTH_TRY(auto bindings,
            store::bindings_of_target(session, SecretTarget::agent, run.agent_id->str()));
  if (run.environment_id) {
    BERTH_TRY(const auto more, store::bindings_of_target(session, SecretTarget::environment,
                                                         run.environment_id->str()));
    bindings.insert(bindings.end(), more.begin(), more.end());
  }
  std::vector<Readable> list;
  std::set<core::SecretId> seen;
  for (core::SecretBinding& binding : bindings) {
    const bool ours = binding.company_id == run.company_id;
    if (!ours || !binding.config_path.starts_with(variable_path)) continue;
    if (!seen.insert(binding.secret_id).second) continue;
    BERTH_TRY(auto row,
              store::find_secret(session, core::Reach::only(run.company_id), binding.secret_id));
    if (row.value.status != core::SecretStatus::active) continue;
    list.push_back({std::move(row.value), std::move(binding)});
  }
  return list;
}

std::int64_t resolved_version(const Readable& readable) {
  const std::string& selector = readable.binding.version_selector;
  std::int64_t number = readable.secret.latest_version;
  if (selector != "latest") {
    std::from_chars(selector.data(), selector.data() + selector.size(), number);
  }
  return number;
}

RunSecret to_view(const Readable& readable) {
  const auto& [secret, binding] = readable;
  return {.key = secret.key,
          .name = secret.name,
          .description = secret.description,
          .projection_class = binding.projection_class,
          .latest_version = secret.latest_version,
          .version_selector = binding.version_selector,
          .resolved_version = resolved_version(readable),
          .secret_ref = core::to_json({secret.id, binding.version_selector})};
}

Result<SecretRead> read_of(store::Session& session, const core::Caller& who,
                           const std::string& key) {
  BERTH_TRY(const core::Run run, running_run(session, who));
  BERTH_TRY(const auto readable, readable_secrets(session, run));
  const auto found = std::ranges::find_if(
      readable, [&](const Readable& candidate) { return candidate.secret.key == key; });
  if (found == readable.end()) {
    return fail(Errc::secret_not_found, "Secret not found",
                "GET /api/agents/me/secrets lists what this run may read");
  }
  return SecretRead{.company_id = run.company_id,
                    .secret_id = found->secret.id,
                    .target_type = found->binding.target_type,
                    .target_id = found->binding.target_id,
                    .config_path = found->binding.config_path,
                    .asked_by = run.agent_id};
}

}  // namespace

Task<RunSecretList> RunSecrets::list(core::Call call) {
  co_return co_await means_.store.write([&](store::Session& s) -> Result<RunSecretList> {
    BERTH_TRY(const core::Run run, running_run(s, call.who));
    BERTH_TRY(const auto readable, readable_secrets(s, run));
    RunSecretList answer;
    for (const Readable& each : readable) answer.secrets.push_back(to_view(each));
    BERTH_DO(record(s, means_, call,
                    {run.company_id,
                     "secret.access.listed",
                     "heartbeat_run",
                     run.id.str(),
                     {{"count", readable.size()}}}));
    return answer;
  });
}

Task<RunSecretValue> RunSecrets::read(core::Call call, std::string key) {
  BERTH_CO_TRY(const SecretRead wanted, co_await means_.store.read([&](store::Session& s) {
    return read_of(s, call.who, key);
  }));
  BERTH_CO_TRY(const ResolvedSecret found, co_await secrets_.resolve(call, wanted));
  // Written down before the value leaves: a server that finds the run later must know of it.
  const core::RunId& run = *call.who.run_id;
  BERTH_CO_DO(co_await means_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(running_run(s, call.who));
    BERTH_DO(store::record_redaction(s, {run, wanted.secret_id, found.version}));
    return record(s, means_, call,
                  {wanted.company_id,
                   "secret.value.read",
                   "secret",
                   wanted.secret_id.str(),
                   {{"key", key}, {"version", found.version}}});
  }));
  sink_.hide(run, found.value);
  co_return RunSecretValue{key, std::string{found.value.reveal()}, found.version};
}

Task<std::vector<Secret>> values_given_to(Means& means, core::RunId run) {
  using Versions = std::vector<core::SecretVersion>;
  BERTH_CO_TRY(const Versions versions,
               co_await means.store.read([&](store::Session& s) -> Result<Versions> {
                 BERTH_TRY(const auto redactions, store::redactions_of_run(s, run));
                 Versions found;
                 for (const store::RunRedaction& redaction : redactions) {
                   BERTH_TRY(auto version,
                             store::find_version(s, redaction.secret_id, redaction.secret_version));
                   if (version) found.push_back(*std::move(version));
                 }
                 return found;
               }));
  std::vector<Secret> values;
  for (const core::SecretVersion& version : versions) {
    BERTH_CO_TRY(Secret value, unseal_version(means, version));
    values.push_back(std::move(value));
  }
  co_return values;
}

}  // namespace berth::engine
