// Interactive commands: logins on a terminal, and byte streams.
#include "base/base64.hpp"
#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "places/remote/remote_config.hpp"
#include "places/remote/site.hpp"

#include <algorithm>

namespace berth::places::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto lifetime = 60min;
constexpr auto close_wait = 25s;  // longer than a stop and a close take
constexpr auto farewell = 3s;     // for all of them, when the server stops
// Of one write: fits its limit even when encoded as base64 twice.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;

// The protocol can express neither a command's folder nor the end of its input. So a shell in the
// sandbox enters the folder. It feeds the command through a named pipe with lines of base64, until
// an empty line. The shell then becomes the command, so that its exit is the command's, and the
// feeder does not delay a command that ends early.
constexpr std::string_view stream_script = R"sh(exec 2>&1
cd "$1" || exit 125
shift
at=$(mktemp -d) && mkfifo "$at/in" || exit 125
exec 3<&0
{
  exec >"$at/in" 2>/dev/null
  rm -rf "$at"
  while IFS= read -r line && [ -n "$line" ]; do
    printf '%s\n' "$line" | base64 -d || break
  done
} <&3 &
exec "$@" <"$at/in" 3<&-
)sh";

std::string name_of_provider(const DriverPlace& driver) {
  return "Sandbox provider \"" + driver.driver->driver_key + "\" of plugin " + driver.plugin_key;
}

Result<> expect_login(const Supervisor& plugin, const DriverPlace& driver, LoginCommand command) {
  const bool is_newer = plugin.dialect() == Dialect::c;
  const char* const method = is_newer ? "loginPtyOpen" : "setupTokenPtyOpen";
  const bool declared = driver.driver->supports_login_pty;
  if (!declared || !plugin.advertises(method)) {
    return fail(Errc::execution_unsupported,
                name_of_provider(driver) + " has no login terminal: " +
                    (declared ? "its worker does not answer " + std::string{method}
                              : "its manifest does not declare supportsLoginPty"),
                "log in where the provider has one, and give the token to the environment as a "
                "secret");
  }
  if (is_newer || command == LoginCommand::claude) return {};
  return fail(Errc::execution_unsupported,
              name_of_provider(driver) + " logs in with claude only, not with " +
                  std::string{name_of(command)},
              "use a newer version of the plugin");
}

Result<> expect_stream(const Supervisor& plugin, const DriverPlace& driver, bool is_effective,
                       DuplexBridge bridge) {
  const std::string what =
      name_of_provider(driver) + " takes the input of a command only as a whole, before it runs: ";
  const std::string instead =
      "pass the input from a file or a pipe, which is sent when it has "
      "ended, or choose an environment of provider linux";
  if (!is_effective) {
    const bool declared = driver.driver->capabilities.duplex_command_stream == true;
    const char* const why = !declared ? "its manifest does not declare duplexCommandStream"
                            : !plugin.advertises("duplexChannelOpen")
                                ? "its worker does not answer duplexChannelOpen"
                                : "this lease does not allow its duplexCommandStream";
    return fail(Errc::execution_unsupported, what + why, instead);
  }
  if (bridge == DuplexBridge::on) return {};
  return fail(Errc::execution_unsupported, what + "the setting enableSandboxDuplexBridge is off",
              "let an administrator turn it on: berth settings set enableSandboxDuplexBridge=true");
}

Result<Ended> ended_from(const StreamEnd& end, const std::string& subject) {
  switch (end.cause) {
    case StreamEnd::Cause::exited:
      return Ended{.outcome = Outcome::exited, .exit_code = end.exit_code};
    case StreamEnd::Cause::closed: return Ended{.outcome = Outcome::stopped};
    case StreamEnd::Cause::timed_out: return Ended{.outcome = Outcome::timed_out};
    case StreamEnd::Cause::worker_gone:
      return fail(Errc::plugin_unavailable, subject + ": " + end.why,
                  "look at the plugin's log; it is started again by itself unless it keeps "
                  "crashing");
    case StreamEnd::Cause::breach:
      return fail(Errc::plugin_protocol, subject + ": " + end.why,
                  "report it to the author of the plugin");
  }
  return fail(Errc::bug, subject + ": it ended for no cause");
}

}  // namespace

// A stream that is open or about to be. A provider task opens, holds and closes it, so nothing
// leaks if the caller leaves at any moment.
struct RemotePlace::Live {
  Live(asio::any_io_executor executor, PlaceKey its_lease, std::string its_route)
      : lease(std::move(its_lease)), route(std::move(its_route)), news(std::move(executor)) {}

  void let_go() {
    is_wanted = false;
    news.notify();
    if (terminal) terminal->stream().news().notify();
  }

  const PlaceKey lease;
  const std::string route;
  Condition news;
  std::shared_ptr<Terminal> terminal = {};
  std::optional<Error> failure = {};  // why it could not be opened
  bool is_wanted = true;
};

class RemotePlace::LiveHandle final : public LiveCommand {
 public:
  LiveHandle(std::shared_ptr<Live> live, const Clock& clock, std::string subject)
      : live_(std::move(live)), clock_(clock), subject_(std::move(subject)) {}
  LiveHandle(const LiveHandle&) = delete;
  LiveHandle& operator=(const LiveHandle&) = delete;
  ~LiveHandle() override { live_->let_go(); }

  const std::string& id() const override { return live_->route; }

  Task<Ended> follow(std::uint64_t offset, OutputTaker& taker) override {
    const std::shared_ptr<Terminal> terminal = live_->terminal;
    while (true) {
      BERTH_CO_TRY(const std::optional<std::string> bytes, co_await terminal->read());
      if (!bytes) break;
      const OutputPiece piece{offset, offset + bytes->size(), OutputKind::out, clock_.now(),
                              *bytes};
      BERTH_CO_DO(co_await taker.take({&piece, 1}));
      offset = piece.next_offset;
    }
    co_return ended_from(terminal->end().value_or(StreamEnd{}), subject_);
  }

  Task<> send(Input input) override {
    const bool is_login = live_->terminal->kind() == Terminal::Kind::login;
    if (auto* bytes = std::get_if<std::string>(&input)) {
      co_return co_await (is_login ? type(std::move(*bytes)) : feed(std::move(*bytes)));
    }
    if (std::holds_alternative<SignalNumber>(input)) {
      co_return fail(Errc::execution_unsupported, subject_ + " takes no signal", "cancel it");
    }
    // A terminal's input has no end, and the protocol cannot resize it.
    const bool ends = std::holds_alternative<EndOfInput>(input);
    if (is_login || !ends) co_return Result<>{};
    co_return co_await live_->terminal->write("\n");
  }

  Task<> cancel() override {
    live_->let_go();
    co_return Result<>{};
  }

 private:
  // A character that was split waits for its rest, because typed input is sent as text.
  Task<> type(std::string bytes) {
    bytes = std::exchange(cut_, {}) + bytes;
    const std::size_t whole = bytes.size() - cut_character_length(bytes);
    cut_ = bytes.substr(whole);
    bytes.resize(whole);
    for (std::size_t at = 0; at < bytes.size();) {
      std::string piece = bytes.substr(at, piece_bytes);
      piece.resize(piece.size() - cut_character_length(piece));
      at += piece.size();
      BERTH_CO_DO(co_await live_->terminal->write(std::move(piece)));
    }
    co_return Result<>{};
  }

  Task<> feed(std::string bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      std::string line = base64(std::string_view{bytes}.substr(at, piece_bytes)) + "\n";
      BERTH_CO_DO(co_await live_->terminal->write(std::move(line)));
    }
    co_return Result<>{};
  }

  std::shared_ptr<Live> live_;
  const Clock& clock_;
  std::string subject_;
  std::string cut_;
};

Task<LiveCommandPtr> RemotePlace::open_login(const PlaceRef& lease, LoginCommand command) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_DO(expect_login(*place.plugin, place.driver, command));
  std::string route = make_uuid(host_.random(), host_.clock().now());
  bj::object params = place.base;
  for (const char* key : {"config", "issueId"}) params.erase(key);
  if (place.plugin->dialect() == Dialect::c) {
    params["loginCommandKey"] = name_of(command);
    params["sessionHome"] = "/tmp/paperclip-adapter-login/" + route;
  } else {
    params["command"] = "claude setup-token";
  }
  co_return co_await open_live(lease, place.plugin, Terminal::Kind::login, std::move(route),
                               std::move(params));
}

Task<LiveCommandPtr> RemotePlace::open_stream(const PlaceRef& lease, const Command& command,
                                              DuplexBridge bridge) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const bool is_effective = capabilities(lease, core::LeasePolicy::ephemeral).duplex_command_stream;
  BERTH_CO_DO(expect_stream(*place.plugin, place.driver, is_effective, bridge));
  if (host_.open_streams() >= plugins::streams_max) {
    co_return fail(Errc::overloaded,
                   std::to_string(plugins::streams_max) +
                       " byte streams of plugins are open, and no more "
                       "can be",
                   "wait until some have ended");
  }
  const auto named = text_in(place.lease.at("metadata").get_object(), "shellCommand");
  const GivenSecrets::Hold secrets = place.plugin->given().hold(command.secrets);
  bj::array words{named == "bash" ? "bash" : "sh", "-c", stream_script, "berth",
                  command.cwd.empty() ? "." : as_utf8(command.cwd)};
  for (const std::string& word : command.argv) words.emplace_back(as_utf8(word));
  bj::object params = place.base;
  for (const char* key : {"config", "issueId"}) params.erase(key);
  params["command"] = std::move(words);
  std::string route = "duplex-route-" + make_uuid(host_.random(), host_.clock().now());
  co_return co_await open_live(lease, place.plugin, Terminal::Kind::duplex, std::move(route),
                               std::move(params));
}

Task<LiveCommandPtr> RemotePlace::open_live(const PlaceRef& lease,
                                            std::shared_ptr<Supervisor> plugin, Terminal::Kind kind,
                                            std::string route, bj::object params) {
  params["providerLeaseId"] = lease.provider_lease_id.value_or("");
  const std::string subject =
      lease.key.name() + (kind == Terminal::Kind::login ? ": its login" : ": its stream");
  const auto live = std::make_shared<Live>(host_.executor(), lease.key, std::move(route));
  auto handle = std::make_unique<LiveHandle>(live, host_.clock(), subject);
  live_[live->route] = live;
  tasks_.start("plugin.stream", hold(live, std::move(plugin), kind, std::move(params)));
  BERTH_CO_DO(co_await live->news.wait_for([&] { return live->terminal || live->failure; }));
  if (live->failure) co_return std::unexpected(*live->failure);
  co_return LiveCommandPtr{std::move(handle)};
}

Task<> RemotePlace::hold(std::shared_ptr<Live> live, std::shared_ptr<Supervisor> plugin,
                         Terminal::Kind kind, bj::object params) {
  Result<std::shared_ptr<Terminal>> opened =
      co_await Terminal::open(plugin, kind, live->route, std::move(params));
  if (!opened) {
    live->failure = std::move(opened).error();
    live_.erase(live->route);
    live->news.notify();
    co_return Result<>{};
  }
  const std::shared_ptr<Terminal> terminal = *opened;
  live->terminal = terminal;
  live->news.notify();
  const auto is_over = [&] { return !live->is_wanted || terminal->end(); };
  const auto until = std::chrono::steady_clock::now() + lifetime;
  Result<> waited = co_await terminal->stream().news().wait_for(is_over, until);
  if (waited && !is_over()) {
    terminal->stream().finish({.cause = StreamEnd::Cause::timed_out, .why = "its time is over"});
  }
  // Not every worker can stop; only closing is required.
  if (waited && !terminal->end()) (void)co_await terminal->stop();
  if (waited) waited = co_await terminal->close();
  live_.erase(live->route);
  live->news.notify();
  co_return waited;
}

Task<> RemotePlace::end_live(const PlaceRef& lease) {
  std::vector<std::shared_ptr<Live>> its_own;
  for (const auto& [route, live] : live_) {
    if (live->lease == lease.key) its_own.push_back(live);
  }
  const auto until = std::chrono::steady_clock::now() + close_wait;
  for (const std::shared_ptr<Live>& live : its_own) {
    live->let_go();
    const auto is_closed = [&] { return !live_.contains(live->route); };
    BERTH_CO_DO(co_await live->news.wait_for(is_closed, until));
  }
  co_return Result<>{};
}

Task<> RemotePlace::close() {
  std::vector<std::shared_ptr<Live>> all;
  for (const auto& [route, live] : live_) all.push_back(live);
  const auto until = std::chrono::steady_clock::now() + farewell;
  for (const std::shared_ptr<Live>& live : all) live->let_go();
  for (const std::shared_ptr<Live>& live : all) {
    const auto is_closed = [&] { return !live_.contains(live->route); };
    BERTH_CO_DO(co_await live->news.wait_for(is_closed, until));
  }
  co_return co_await tasks_.stop();
}

}  // namespace berth::places::remote
