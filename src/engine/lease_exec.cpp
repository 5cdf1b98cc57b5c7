// One more command in a place that a lease holds: a look into it while it lives or is retained.
#include "base/text.hpp"
#include "engine/journal.hpp"
#include "engine/lease_work.hpp"
#include "engine/leases.hpp"

namespace berth::engine {
namespace {

constexpr std::size_t stream_bytes_max = std::size_t{1} << 20;
constexpr std::int64_t usual_timeout_ms = 30'000;
constexpr std::int64_t timeout_ms_max = 60'000;
constexpr std::int64_t grace_ms = 1000;

// The beginning of what a command says.
class Beginning final : public drivers::OutputTaker {
 public:
  Task<> take(std::span<const drivers::OutputPiece> pieces) override {
    for (const drivers::OutputPiece& piece : pieces) {
      std::string& stream = piece.kind == drivers::OutputKind::out ? out : err;
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

}  // namespace

Task<ExecOutcome> Leases::exec(core::Call call, core::LeaseId id, ExecInLease wanted) {
  const std::int64_t timeout_ms = wanted.timeout_ms.value_or(usual_timeout_ms);
  if (timeout_ms < 1 || timeout_ms > timeout_ms_max) {
    co_return fail(Errc::validation_failed, "/timeoutMs: must be from 1 to 60000");
  }
  BERTH_CO_TRY(const auto row,
               co_await means_.store.write([&](store::Session& s) -> Result<LeaseWork::Row> {
                 BERTH_TRY(auto found, store::find_lease_record(s, core::Reach::of(call.who), id));
                 const core::LeaseState state = found.value.status;
                 if (state != core::LeaseState::active && state != core::LeaseState::retained) {
                   return fail(Errc::conflict, "Lease " + id.str() + " holds no place: it is " +
                                                   std::string{name_of(state)});
                 }
                 BERTH_DO(record(s, means_, call,
                                 {found.value.company_id,
                                  "environment.lease_exec",
                                  "environment_lease",
                                  id.str(),
                                  {{"command", wanted.argv.empty() ? "" : wanted.argv.front()}}}));
                 return found;
               }));
  BERTH_CO_TRY(drivers::Driver* const driver, work_.driver(row.value));
  BERTH_CO_TRY(const drivers::LeaseFacts facts, co_await work_.facts(row.value));
  BERTH_CO_TRY(const drivers::Workspace place, co_await driver->realize(facts, wanted.cwd));
  drivers::Command command{.exec_id = "exec-" + make_uuid(means_.random, means_.clock.now()),
                           .argv = std::move(wanted.argv),
                           .cwd = place.cwd,
                           .timeout_ms = timeout_ms,
                           .grace_ms = grace_ms};
  command.environment.emplace(
      "PATH", Secret{place.path.value_or("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")});
  if (place.home) command.environment.emplace("HOME", Secret{*place.home});
  for (const auto& [name, value] : wanted.env.value_or(std::map<std::string, std::string>{})) {
    command.environment.insert_or_assign(name, Secret{value});
  }
  if (wanted.stdin_text) command.input = drivers::StdinBytes{Secret{*wanted.stdin_text}};
  BERTH_CO_DO(co_await driver->start(facts, command));
  Beginning output;
  BERTH_CO_TRY(const drivers::Ended ended,
               co_await driver->follow(facts, command.exec_id, 0, output));
  co_return ExecOutcome{.outcome = ended.outcome,
                        .exit_code = ended.exit_code,
                        .signal = ended.signal,
                        .stdout_text = as_utf8(output.out),
                        .stderr_text = as_utf8(output.err),
                        .is_truncated = output.truncated,
                        .usage = ended.usage};
}

}  // namespace berth::engine
