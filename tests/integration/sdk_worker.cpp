#include "sdk/live_output.hpp"
#include "sdk/provider.hpp"

#include <fcntl.h>

#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>

// A worker on the SDK that does what sdk_test.cpp requests. Its commands are words.
namespace berth::sdk_test {

enum class Size { small, large };
BOOST_DESCRIBE_ENUM(Size, small, large)

struct Proxy {
  std::string url = "none";
  std::optional<Secret> password = {};
};
BOOST_DESCRIBE_STRUCT(Proxy, (), (url, password))

struct Config {
  Secret api_key = {};
  std::string region = "here";
  Size size = Size::small;
  std::int64_t timeout_ms = 1000;
  std::vector<std::string> tags = {};
  Proxy proxy = {};

  static sdk::Notes<Config> notes() {
    return {{&Config::api_key, {.title = "API key", .required = true}},
            {&Config::timeout_ms, {.title = "Limit", .unit = "ms", .low = 1, .high = 5000}},
            {&Config::region, {.says = "Where.", .advanced = true, .group = "Place"}}};
  }
};
BOOST_DESCRIBE_STRUCT(Config, (), (api_key, region, size, timeout_ms, tags, proxy))

class TestProvider {
 public:
  using Config = sdk_test::Config;

  static sdk::About about() {
    return {.id = "test.sdk",
            .version = "1.2.3",
            .display_name = "SDK test",
            .description = "For tests.",
            .author = "Berth",
            .driver_key = "sdk-test",
            .capabilities = {"plugin.state.read"}};
  }

  Result<> setup(sdk::Call& call) {
    BERTH_TRY(const bj::value boot, call.state({.state_key = "boot"}));
    call.log(sdk::Level::info, "set up", {{"boot", boot}});
    return {};
  }

  Result<sdk::Verdict> validate_config(const Config& config) {
    sdk::Verdict verdict;
    if (config.region == "moon") verdict.errors.emplace_back("there is nothing on the moon");
    if (config.region == "mars") verdict.warnings.emplace_back("far away");
    return verdict;
  }

  // Its program echoes everything, and knows one word.
  Result<sdk::LoginOpened> open_login(sdk::Call& call, const sdk::OpenLogin& request) {
    const std::lock_guard lock{lock_};
    login_ = std::make_unique<sdk::LiveRoute>(call, request, "login-1");
    login_->say("log in to " + request.login_command_key + "\xC3");
    login_->say("\xA9\n");
    return sdk::LoginOpened{.worker_session_id = login_->session()};
  }
  Result<> type_login(sdk::Call& /*call*/, const sdk::TypeLogin& request) {
    const std::lock_guard lock{lock_};
    if (!login_) return fail(Errc::exec_not_found, "there is no login");
    login_->say(request.data);
    if (request.data == "bye") login_->end(0);
    return {};
  }
  Result<sdk::LoginClosed> close_login(sdk::Call& /*call*/, const sdk::CloseLogin& request) {
    const std::lock_guard lock{lock_};
    login_.reset();
    return sdk::LoginClosed{.host_route_id = request.host_route_id};
  }

  Result<sdk::ChannelOpened> open_channel(sdk::Call& call, const sdk::OpenChannel& request) {
    sdk::LiveRoute route{call, request, "channel-1"};
    route.say(std::string_view{"\0\xFF", 2});
    route.end(3);
    return sdk::ChannelOpened{.host_route_id = route.route(), .worker_session_id = route.session()};
  }

  Result<sdk::Executed> execute(sdk::Call& call, const Config& config,
                                const sdk::Execute& request) {
    sdk::Executed executed{.exit_code = 0};
    if (request.command == "fail") {
      return fail(Errc::command_start_failed, "it did not work", "try harder");
    }
    if (request.command == "throw") throw std::runtime_error("thrown");
    if (request.command == "print") std::puts("a library prints this");
    if (request.command == "reveal") executed.stdout_ = config.api_key.reveal();
    if (request.command == "hold") hold();
    if (request.command == "hold-until-opened") hold_until_opened(request.args->front());
    if (request.command == "let-go") let_go();
    if (request.command == "cut") cut(call, executed);
    if (request.command == "ask") return ask_host(call);
    return executed;
  }

 private:
  void hold() {
    std::unique_lock lock{lock_};
    ++holding_;
    changed_.wait(lock, [this] { return holding_ == 0; });
  }
  // For more calls than there are threads, so no call could release them: a named pipe opens when
  // the other end is opened.
  static void hold_until_opened(const std::string& path) {
    const Fd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  }
  void let_go() {
    const std::lock_guard lock{lock_};
    holding_ = 0;
    changed_.notify_all();
  }
  static void cut(sdk::Call& call, sdk::Executed& executed) {
    sdk::LiveOutput output{call};
    for (const char* piece : {"\xE2", "\x82", "\xAC", "\xFF", "\xE2\x80\xA8", "\xC3"}) {
      output.add(sdk::Stream::stdout_, piece);
    }
    output.finish(executed);
  }
  static Result<sdk::Executed> ask_host(sdk::Call& call) {
    BERTH_TRY(const bj::object config, call.config());
    BERTH_DO(call.set_state({.scope_kind = "company", .scope_id = "c", .state_key = "k"}, 7));
    BERTH_TRY(const Secret secret, call.secret({{"type", "secret_ref"}}, "apiKey"));
    BERTH_TRY(const sdk::HttpAnswer page, call.fetch("https://example.invalid/", {}));
    return sdk::Executed{.exit_code = page.status,
                         .stdout_ = encode_text(config) + std::string{secret.reveal()}};
  }

  std::mutex lock_;
  std::condition_variable changed_;
  int holding_ = 0;
  std::unique_ptr<sdk::LiveRoute> login_;
};

}  // namespace berth::sdk_test

int main(int argc, char** argv) {
  return berth::sdk::serve<berth::sdk_test::TestProvider>(argc, argv);
}
