// Access to a leased place while it is active or retained: its usage, and extra commands.
#include "base/text.hpp"
#include "core/config/bindings.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "engine/leases/leases.hpp"

namespace berth::engine {
namespace {

using places::Lack;

constexpr std::size_t stream_bytes_max = std::size_t{1} << 20;
// Enough to return each stream in full; further output is not worth the disk space. The rest is for
// the keeper's own framing.
constexpr std::int64_t kept_bytes_max = 4 * static_cast<std::int64_t>(stream_bytes_max);
constexpr std::int64_t usual_timeout_ms = 30'000;
constexpr std::int64_t exec_timeout_ms_max = 60'000;
constexpr std::int64_t grace_ms = 1000;

// Keeps the beginning of a command's output.
class Beginning final : public places::OutputTaker {
 public:
  Task<> take(std::span<const places::OutputPiece> pieces) override {
    for (const places::OutputPiece& piece : pieces) {
      // Keeper notes are not output; they are counted at the end.
      if (piece.kind == places::OutputKind::note) continue;
      std::string& stream = piece.kind == places::OutputKind::out ? out : err;
      const std::size_t room = stream_bytes_max - stream.size();
      stream += piece.bytes.substr(0, room);
      truncated = truncated || piece.bytes.size() > room;
    }
    co_return Result<>{};
  }

  std::string out;
  std::string err;
  bool truncated = false;
};

Entry exec_entry(const core::LeaseRecord& lease, const ExecInLease& wanted) {
  return {lease.company_id,
          "environment.lease_exec",
          "environment_lease",
          lease.id.str(),
          {{"command", wanted.argv.empty() ? "" : wanted.argv.front()}}};
}

Result<> check_names(const std::optional<std::map<std::string, std::string>>& env) {
  if (!env) return {};
  for (const auto& [name, value] : *env) {
    if (core::is_env_name(name)) continue;
    return fail(Errc::validation_failed, "/env: " + in_quotes(name) + " is not a variable name",
                "use letters, digits and underscores, no digit first");
  }
  return {};
}

}  // namespace

Task<Leases::Held> Leases::look_into(const core::Call& call, const core::LeaseId& id) {
  const auto find = [&](store::Session& s) -> Result<LeaseLifecycle::Row> {
    BERTH_TRY(LeaseLifecycle::Row found,
              store::find_lease_record(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_held(s, found.value, work_.node()));
    return found;
  };
  BERTH_CO_TRY(LeaseLifecycle::Row row, co_await services_.store.read(find));
  BERTH_CO_TRY(places::Place* const place, work_.place_of(row.value));
  BERTH_CO_TRY(places::PlaceRef facts, co_await work_.facts(row.value));
  co_return Held{std::move(row.value), *place, std::move(facts)};
}

Task<places::Usage> Leases::usage(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(const Held held, co_await look_into(call, id));
  BERTH_CO_TRY(places::UsageMeter* const meter, need<Lack::usage>(held.place, held.facts));
  co_return co_await meter->usage(held.facts);
}

Task<ListeningPorts> Leases::listening(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(const Held held, co_await look_into(call, id));
  BERTH_CO_TRY(places::Ports* const ports, need<Lack::open_ports>(held.place, held.facts));
  BERTH_CO_TRY(const auto open, co_await ports->listening(held.facts));
  co_return ListeningPorts{{open.begin(), open.end()}};
}

Task<Fd> Leases::dial(core::Call call, core::LeaseId id, std::uint16_t port) {
  BERTH_CO_TRY(const Held held, co_await look_into(call, id));
  BERTH_CO_TRY(places::Ports* const ports,
               need<Lack::port>(held.place, held.facts, std::to_string(port)));
  co_return co_await ports->dial(held.facts, port);
}

Task<ExecOutcome> Leases::exec(core::Call call, core::LeaseId id, ExecInLease wanted) {
  const std::int64_t timeout_ms = wanted.timeout_ms.value_or(usual_timeout_ms);
  if (timeout_ms < 1 || timeout_ms > exec_timeout_ms_max) {
    co_return fail(Errc::validation_failed, "/timeoutMs: must be from 1 to 60000",
                   "run what takes longer with .../stream ('berth exec')");
  }
  BERTH_CO_DO(check_names(wanted.env));
  // A retried request gets the same id, and each id runs one command.
  const auto name_it = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(const auto found, store::find_lease_record(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_held(s, found.value, work_.node()));
    BERTH_DO(expect_moving(found.value));
    BERTH_DO(expect_allowed(s, services_, found.value));
    BERTH_DO(record(s, services_, call, exec_entry(found.value, wanted)));
    return "exec-" + make_uuid(services_.random, services_.clock.now());
  };
  BERTH_CO_TRY(const std::string exec_id, co_await idempotent_write(services_, call, name_it));
  BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::of(call.who), id);
  }));
  BERTH_CO_TRY(places::Place* const place, work_.place_of(row.value));
  BERTH_CO_TRY(const places::PlaceRef facts, co_await work_.facts(row.value));
  BERTH_CO_TRY(places::Commands* const commands, need<Lack::commands>(*place, facts));
  BERTH_CO_TRY(const places::Workspace workspace, co_await commands->realize(facts, wanted.cwd));
  places::Command command{.exec_id = exec_id,
                          .argv = std::move(wanted.argv),
                          .cwd = workspace.cwd,
                          .timeout_ms = timeout_ms,
                          .grace_ms = grace_ms,
                          .output_bytes_max = kept_bytes_max};
  command.environment = usual_environment(workspace);
  for (const auto& [name, value] : wanted.env.value_or(std::map<std::string, std::string>{})) {
    command.environment.insert_or_assign(name, Secret{value});
    if (core::looks_sensitive(name)) command.secrets.emplace_back(value);
  }
  if (wanted.stdin_text) command.input = places::StdinBytes{Secret{*wanted.stdin_text}};
  BERTH_CO_DO(co_await commands->start(facts, command));
  Beginning output;
  BERTH_CO_TRY(const places::Ended ended,
               co_await commands->follow(facts, command.exec_id, 0, output));
  co_return ExecOutcome{
      .outcome = ended.outcome,
      .exit_code = ended.exit_code,
      .signal = ended.signal,
      .stdout_text = as_utf8(output.out),
      .stderr_text = as_utf8(output.err),
      .is_truncated = output.truncated || ended.bytes_lost + ended.bytes_over_limit > 0,
      .bytes_lost = ended.bytes_lost,
      .usage = ended.usage};
}

}  // namespace berth::engine
