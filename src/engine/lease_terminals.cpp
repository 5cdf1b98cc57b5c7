#include "engine/lease_terminals.hpp"

#include "engine/held_lease.hpp"
#include "engine/journal.hpp"
#include "engine/lease_work.hpp"
#include "store/leases.hpp"

namespace berth::engine {
namespace {

// Whoever leaves a terminal open over night finds it closed.
constexpr std::int64_t timeout_ms = 8LL * 60 * 60 * 1000;
constexpr std::int64_t grace_ms = 1000;
constexpr std::size_t id_size_max = 64;
constexpr std::string_view any_shell =
    "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi";

bool is_terminal_id(std::string_view id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !id.empty() && id.size() <= id_size_max && std::ranges::all_of(id, fits);
}

drivers::Command command_of(OpenTerminal wanted, std::string exec_id,
                            const drivers::Workspace& place) {
  if (wanted.argv.empty()) wanted.argv = {"sh", "-c", std::string{any_shell}};
  drivers::Command command{.exec_id = std::move(exec_id),
                           .argv = std::move(wanted.argv),
                           .cwd = place.cwd,
                           .input = drivers::StdinPipe{},
                           .terminal = wanted.size,
                           .timeout_ms = timeout_ms,
                           .grace_ms = grace_ms};
  command.environment.emplace(
      "PATH", Secret{place.path.value_or("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")});
  command.environment.emplace("TERM", Secret{"xterm-256color"});
  if (place.home) command.environment.emplace("HOME", Secret{*place.home});
  return command;
}

}  // namespace

Task<LeaseTerminals::Terminal> LeaseTerminals::open(core::Call call, core::LeaseId lease,
                                                    OpenTerminal wanted) {
  if (wanted.id && !is_terminal_id(*wanted.id)) {
    co_return fail(Errc::validation_failed, "/id: is not 1 to 64 letters, digits and hyphens");
  }
  const std::string exec_id =
      "terminal-" + wanted.id.value_or(make_uuid(means_.random, means_.clock.now()));
  const auto intend = [&](store::Session& s) -> Result<core::LeaseRecord> {
    BERTH_TRY(auto found, store::find_lease_record(s, core::Reach::of(call.who), lease));
    BERTH_DO(expect_held(found.value, work_.node()));
    BERTH_DO(expect_moving(found.value));
    BERTH_DO(record(
        s, means_, call,
        {found.value.company_id, "environment.lease_terminal", "environment_lease", lease.str()}));
    return std::move(found.value);
  };
  BERTH_CO_TRY(const core::LeaseRecord held, co_await means_.store.write(intend));
  BERTH_CO_TRY(drivers::Driver* const driver, work_.driver(held));
  BERTH_CO_TRY(drivers::LeaseFacts facts, co_await work_.facts(held));
  BERTH_CO_TRY(const drivers::Workspace place, co_await driver->realize(facts, wanted.cwd));
  const drivers::Command command = command_of(std::move(wanted), exec_id, place);
  BERTH_CO_DO(co_await driver->start(facts, command));
  co_return Terminal{driver, std::move(facts), exec_id};
}

}  // namespace berth::engine
