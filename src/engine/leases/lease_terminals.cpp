#include "engine/leases/lease_terminals.hpp"

#include "base/log.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "store/places/leases.hpp"

namespace berth::engine {
namespace {

using places::Lack;

// A terminal left open overnight is closed.
constexpr std::int64_t timeout_ms = 8LL * 60 * 60 * 1000;
constexpr std::int64_t terminal_grace_ms = 1000;
constexpr std::size_t id_size_max = 64;
constexpr std::string_view any_shell =
    "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi";

bool is_terminal_id(std::string_view id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !id.empty() && id.size() <= id_size_max && std::ranges::all_of(id, fits);
}

places::Command command_in(const places::Workspace& place, std::string exec_id,
                           std::vector<std::string> argv) {
  places::Command command{.exec_id = std::move(exec_id),
                          .argv = std::move(argv),
                          .cwd = place.cwd,
                          .input = places::StdinPipe{},
                          .timeout_ms = timeout_ms,
                          .grace_ms = terminal_grace_ms};
  command.environment = usual_environment(place);
  return command;
}

// A command that its place finds again by its id.
class HeldCommand : public places::LiveCommand {
 public:
  HeldCommand(places::Commands& commands, places::PlaceRef facts, std::string exec_id)
      : commands_(commands), facts_(std::move(facts)), exec_id_(std::move(exec_id)) {}

  const std::string& id() const override { return exec_id_; }
  Task<places::Ended> follow(std::uint64_t offset, places::OutputTaker& taker) override {
    co_return co_await commands_.follow(facts_, exec_id_, offset, taker);
  }
  Task<> forget_output() { co_return co_await commands_.forget_output(facts_, exec_id_); }
  Task<> send(places::Input input) override {
    co_return co_await commands_.send(facts_, exec_id_, std::move(input));
  }
  Task<> cancel() override {
    co_return co_await commands_.cancel(facts_, exec_id_, terminal_grace_ms);
  }

 private:
  places::Commands& commands_;
  places::PlaceRef facts_;
  std::string exec_id_;
};

// A command whose output can be read only once.
class StreamedCommand final : public HeldCommand {
 public:
  using HeldCommand::HeldCommand;
  Task<places::Ended> follow(std::uint64_t offset, places::OutputTaker& taker) override {
    BERTH_CO_TRY(places::Ended ended, co_await HeldCommand::follow(offset, taker));
    // Anything left is removed with the sandbox.
    const Result<> forgotten = co_await forget_output();
    if (!forgotten)
      log::warn("exec.output_left", {{"exec", id()}, {"error", forgotten.error().message}});
    co_return ended;
  }
};

}  // namespace

// The intent is recorded in the activity before anything is opened.
Task<LeaseTerminals::Place> LeaseTerminals::enter(const core::Call& call,
                                                  const core::LeaseId& lease,
                                                  std::string_view action, bj::object details) {
  const auto intend = [&](store::Session& s) -> Result<core::LeaseRecord> {
    BERTH_TRY(auto found, store::find_lease_record(s, core::Reach::of(call.who), lease));
    BERTH_DO(expect_held(s, found.value, work_.node()));
    BERTH_DO(expect_moving(found.value));
    BERTH_DO(expect_allowed(s, services_, found.value));
    BERTH_DO(record(s, services_, call,
                    {found.value.company_id, action, "environment_lease", lease.str(), details}));
    return std::move(found.value);
  };
  BERTH_CO_TRY(const core::LeaseRecord held, co_await services_.store.write(intend));
  BERTH_CO_TRY(places::Place* const place, work_.place_of(held));
  BERTH_CO_TRY(places::PlaceRef facts, co_await work_.facts(held));
  co_return Place{*place, std::move(facts)};
}

Task<places::LiveCommandPtr> LeaseTerminals::open(core::Call call, core::LeaseId lease,
                                                  OpenTerminal wanted) {
  if (wanted.id && !is_terminal_id(*wanted.id)) {
    co_return fail(Errc::validation_failed, "/id: is not 1 to 64 letters, digits and hyphens");
  }
  const std::string exec_id =
      "terminal-" + wanted.id.value_or(make_uuid(services_.random, services_.clock.now()));
  BERTH_CO_TRY(Place held, co_await enter(call, lease, "environment.lease_terminal", {}));
  BERTH_CO_TRY(places::Commands* const commands, need<Lack::commands>(held.place, held.facts));
  BERTH_CO_TRY(const places::Workspace place, co_await commands->realize(held.facts, wanted.cwd));
  if (wanted.argv.empty()) wanted.argv = {"sh", "-c", std::string{any_shell}};
  places::Command command = command_in(place, exec_id, std::move(wanted.argv));
  command.terminal = wanted.size;
  command.environment.emplace("TERM", Secret{"xterm-256color"});
  BERTH_CO_DO(co_await commands->start(held.facts, command));
  co_return std::make_unique<HeldCommand>(*commands, std::move(held.facts), exec_id);
}

Task<places::LiveCommandPtr> LeaseTerminals::log_in(core::Call call, core::LeaseId lease,
                                                    places::LoginCommand command) {
  bj::object details{{"command", name_of(command)}};
  BERTH_CO_TRY(const Place held,
               co_await enter(call, lease, "environment.lease_login", std::move(details)));
  const bool is_claude = command == places::LoginCommand::claude;
  BERTH_CO_TRY(
      places::Logins* const logins,
      need<Lack::login>(held.place, held.facts, is_claude ? "claude setup-token" : "codex login"));
  co_return co_await logins->open_login(held.facts, command);
}

// Empty if the place has no such channel and the command can be started like any other.
Task<places::LiveCommandPtr> LeaseTerminals::open_duplex(const Place& held,
                                                         const places::Command& command,
                                                         OpenStream::Input input) {
  places::Logins* const logins = held.place.abilities().logins;
  if (logins == nullptr) co_return nullptr;
  // An unreadable setting counts as off.
  const Result<InstanceSettings> settings = co_await services_.store.read(read_settings);
  const bool is_on = settings && settings->enable_sandbox_duplex_bridge;
  Result<places::LiveCommandPtr> opened = co_await logins->open_stream(
      held.facts, command, is_on ? places::DuplexBridge::on : places::DuplexBridge::off);
  const bool may_gather = !opened && opened.error().code == Errc::execution_unsupported &&
                          input == OpenStream::Input::whole_will_do;
  if (may_gather) co_return nullptr;
  co_return opened;
}

Task<places::LiveCommandPtr> LeaseTerminals::stream(core::Call call, core::LeaseId lease,
                                                    OpenStream wanted) {
  if (wanted.argv.empty()) {
    co_return fail(Errc::validation_failed, "/command: has no words",
                   "name the program and its arguments");
  }
  if (wanted.timeout_ms && (*wanted.timeout_ms < 1 || *wanted.timeout_ms > timeout_ms)) {
    co_return fail(Errc::validation_failed,
                   "/timeoutMs: must be from 1 to " + std::to_string(timeout_ms));
  }
  bj::object details{{"command", wanted.argv.front()}};
  BERTH_CO_TRY(Place held,
               co_await enter(call, lease, "environment.lease_exec", std::move(details)));
  BERTH_CO_TRY(places::Commands* const commands, need<Lack::commands>(held.place, held.facts));
  BERTH_CO_TRY(const places::Workspace place, co_await commands->realize(held.facts, wanted.cwd));
  const std::string exec_id = "stream-" + make_uuid(services_.random, services_.clock.now());
  places::Command command = command_in(place, exec_id, std::move(wanted.argv));
  if (wanted.timeout_ms) command.timeout_ms = *wanted.timeout_ms;
  if (wanted.input == OpenStream::Input::none) {
    command.input = places::NoStdin{};
  } else {
    BERTH_CO_TRY(places::LiveCommandPtr opened, co_await open_duplex(held, command, wanted.input));
    if (opened) co_return std::move(opened);
  }
  BERTH_CO_DO(co_await commands->start(held.facts, command));
  co_return std::make_unique<StreamedCommand>(*commands, std::move(held.facts), exec_id);
}

}  // namespace berth::engine
