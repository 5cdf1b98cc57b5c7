#include "engine/runs/run_secrets.hpp"

#include "base/log.hpp"
#include "core/config/bindings.hpp"
#include "engine/journal.hpp"
#include "engine/secrets/secret_seals.hpp"
#include "store/secrets.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <charconv>
#include <set>

namespace berth::engine {
namespace {

constexpr std::string_view variable_path = "env.";
// How often servers check for values to hide, and how many checks one waits before it gives up.
constexpr std::chrono::milliseconds note_look_every{500};
constexpr int looks_max = 20;

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

// Each secret once. The agent's own binding takes precedence over the environment's, as its
// variable does.
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

RunSecret secret_view(const Readable& readable) {
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

// Whether the server that currently works on the run hides the recorded value.
Result<bool> is_hidden(store::Session& session, const core::Caller& who,
                       const store::RunRedaction& noted) {
  BERTH_TRY(const core::Run run, running_run(session, who));
  BERTH_TRY(const auto all, store::redactions_of_run(session, run.id));
  return std::ranges::any_of(all, [&](const store::RunRedaction& each) {
    return each.secret_id == noted.secret_id && each.secret_version == noted.secret_version &&
           each.hidden_by && each.hidden_by == run.node_id;
  });
}

}  // namespace

Result<> RunSecrets::expect_room(const core::Caller& who) {
  constexpr core::Rate rate{.burst = 120, .every = std::chrono::milliseconds{1000}};
  if (!who.run_id) return not_run_bound();
  BERTH_DO(reserve_.expect_room(who));
  const auto verdict = reads_.take(who.run_id->str(), rate, services_.clock.steady());
  if (verdict == core::RateVerdict::granted) return {};
  if (verdict == core::RateVerdict::first_refusal) {
    log::warn("run_secrets.reads_limited", {{"run", *who.run_id}});
  }
  return fail(Errc::rate_limited,
              "Run " + who.run_id->str() + " asks for its secrets more than once a second",
              "keep the value that was read; a run may ask 120 times at once, then once a second");
}

Task<RunSecretList> RunSecrets::list(core::Call call) {
  BERTH_CO_DO(expect_room(call.who));
  co_return co_await services_.store.write([&](store::Session& s) -> Result<RunSecretList> {
    BERTH_TRY(const core::Run run, running_run(s, call.who));
    BERTH_TRY(const auto readable, readable_secrets(s, run));
    RunSecretList answer;
    for (const Readable& each : readable) answer.secrets.push_back(secret_view(each));
    BERTH_DO(record(s, services_, call,
                    {run.company_id,
                     "secret.access.listed",
                     "heartbeat_run",
                     run.id.str(),
                     {{"count", readable.size()}}}));
    return answer;
  });
}

Task<RunSecretValue> RunSecrets::read(core::Call call, std::string key) {
  BERTH_CO_DO(expect_room(call.who));
  BERTH_CO_TRY(const SecretRead wanted, co_await services_.store.read([&](store::Session& s) {
    return read_of(s, call.who, key);
  }));
  BERTH_CO_TRY(const ResolvedSecret found, co_await secrets_.resolve(call, wanted));
  // Recorded before the value is returned: a server that takes over the run later must know of it.
  const auto note = [&](store::Session& s) -> Result<store::RunRedaction> {
    BERTH_TRY(const core::Run run, running_run(s, call.who));
    store::RunRedaction noted{run.id, wanted.secret_id, found.version};
    if (run.node_id == node_) noted.hidden_by = node_;
    BERTH_DO(store::record_redaction(s, noted));
    BERTH_DO(record(s, services_, call,
                    {wanted.company_id,
                     "secret.value.read",
                     "secret",
                     wanted.secret_id.str(),
                     {{"key", key}, {"version", found.version}}}));
    return noted;
  };
  BERTH_CO_TRY(const store::RunRedaction noted, co_await services_.store.write(note));
  if (noted.hidden_by) {
    sink_.hide(noted.run_id, found.value);
  } else {
    BERTH_CO_DO(co_await wait_until_hidden(call.who, noted));
  }
  co_return RunSecretValue{key, std::string{found.value.reveal()}, found.version};
}

Task<> RunSecrets::wait_until_hidden(core::Caller who, store::RunRedaction noted) {
  asio::steady_timer timer{co_await asio::this_coro::executor};
  for (int look = 0; look < looks_max; ++look) {
    BERTH_CO_TRY(const bool hidden, co_await services_.store.read([&](store::Session& s) {
      return is_hidden(s, who, noted);
    }));
    if (hidden) co_return Result<>{};
    timer.expires_after(note_look_every);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return fail(Errc::cancelled, "the wait for the run's server was cancelled");
  }
  co_return fail(Errc::timed_out,
                 "the server that works on run " + noted.run_id.str() + " did not answer in time",
                 "ask again");
}

Task<> RunSecrets::hide_what_others_noted() {
  constexpr std::int64_t batch = 100;
  BERTH_CO_TRY(const auto noted, co_await services_.store.read([&](store::Session& s) {
    return store::redactions_to_hide(s, node_, batch);
  }));
  for (const store::RunRedaction& redaction : noted) {
    BERTH_CO_TRY(const auto version, co_await services_.store.read([&](store::Session& s) {
      return store::find_version(s, redaction.secret_id, redaction.secret_version);
    }));
    if (version) {
      BERTH_CO_TRY(const Secret value, unseal_version(services_, *version));
      sink_.hide(redaction.run_id, value);
    }
    BERTH_CO_DO(co_await services_.store.write(
        [&](store::Session& s) { return store::mark_hidden(s, redaction, node_); }));
  }
  co_return Result<>{};
}

Task<> RunSecrets::watch() {
  asio::steady_timer timer{co_await asio::this_coro::executor};
  while (true) {
    const Result<> hidden = co_await hide_what_others_noted();
    if (!hidden) log::warn("run_secrets.watch_failed", {{"error", hidden.error().message}});
    timer.expires_after(note_look_every);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

Task<std::vector<Secret>> values_given_to(Services& services, core::RunId run) {
  using Versions = std::vector<core::SecretVersion>;
  BERTH_CO_TRY(const Versions versions,
               co_await services.store.read([&](store::Session& s) -> Result<Versions> {
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
    BERTH_CO_TRY(Secret value, unseal_version(services, version));
    values.push_back(std::move(value));
  }
  co_return values;
}

}  // namespace berth::engine
