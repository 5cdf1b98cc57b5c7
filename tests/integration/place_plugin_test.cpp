#include "base/clock.hpp"
#include "integration/place_contract.hpp"
#include "places/remote/remote_place.hpp"
#include "plugins/manifest/manifest_file.hpp"
#include "support/temporary_folder.hpp"

// The contract over the sandboxes of a plugin: `fake-plugin`, under the real host and keeper.
namespace berth::place_test {
namespace {

using namespace places;

class NoServices final : public plugins::HostServices {
 public:
  bool has(std::string_view /*method*/) const override { return false; }
  Task<bj::value> answer(plugins::RequestScope /*scope*/, std::string method,
                         bj::object /*params*/) override {
    co_return fail(Errc::bug, method);
  }
  Task<std::vector<plugins::CompanyConfig>> configs(core::PluginId /*plugin*/) override {
    co_return std::vector<plugins::CompanyConfig>{};
  }
  void log(const core::PluginId& /*plugin*/, plugins::PluginLogLine /*line*/) override {}
  void state_changed(const core::PluginId& /*plugin*/, plugins::WorkerState /*state*/,
                     plugins::StateReason /*reason*/) override {}
};

class PluginGround final : public Ground {
 public:
  Task<> open(asio::any_io_executor executor) override {
    plugins::HostConfig config{.keeper_program = BERTH_KEEPER, .folder = folder_.file("execs")};
    host_.emplace(executor, config, services_, clock_, random_);
    plugins::InstalledPlugin plugin{.id = core::PluginId::make(random_, clock_.now()),
                                    .manifest = {},
                                    .package = {.folder = BERTH_FAKE_PLUGIN_FOLDER}};
    BERTH_CO_TRY(plugin.manifest,
                 co_await plugins::read_manifest(executor, BERTH_FAKE_PLUGIN_FOLDER,
                                                 {.keeper_program = BERTH_KEEPER}));
    co_return co_await host_->start(plugin);
  }
  Task<> close() override { co_return host_ ? co_await host_->close() : Result<>{}; }
  std::unique_ptr<Place> make_place(asio::any_io_executor /*executor*/,
                                    asio::thread_pool& /*pool*/) override {
    return std::make_unique<remote::RemotePlace>(*host_, remote::Addressing::provider_key);
  }
  bj::object config() const override { return {{"provider", "fake-plugin"}}; }
  std::set<std::string> abilities() const override {
    return {"commands", "logins", "remote files", "snapshots"};
  }
  pid_t keeper_of(const PlaceRef& /*lease*/) const override { return 0; }
  std::vector<std::string> leftovers() const override { return {}; }

 private:
  tests::TemporaryFolder folder_;
  SystemRandom random_;
  SystemClock clock_;
  NoServices services_;
  std::optional<plugins::Host> host_;
};

std::unique_ptr<Ground> make_plugin_ground() {
  return std::make_unique<PluginGround>();
}

INSTANTIATE_TEST_SUITE_P(Plugin, PlaceContract, testing::Values(&make_plugin_ground));

class PluginPlaceTest : public CommandContract {};
INSTANTIATE_TEST_SUITE_P(Plugin, PluginPlaceTest, testing::Values(&make_plugin_ground));

TEST_P(PluginPlaceTest, ACommandsStreamsAndExitCodeComeBack) {
  Collected output;
  const Ended ended = run(shell("echo out; echo err >&2; exit 7"), output);
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
  EXPECT_EQ(ended.exit_code, 7);
}

TEST_P(PluginPlaceTest, ACommandThatHasEndedIsFollowedAgain) {
  Collected output;
  run(shell("echo once"), output);
  Collected again;
  follow("e1", again);
  EXPECT_EQ(again.out, output.out);
}

TEST_P(PluginPlaceTest, ItsFilesAreThoseThatItsCommandsMake) {
  Collected output;
  run(shell("printf seen > made"), output);
  RemoteFiles& files = *place().abilities().remote_files;
  const RemotePath path{.folder = workspace().cwd, .rest = "made"};
  const auto content = await(files.read(lease(), path, 0, 4));
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_EQ(*content, "seen");
}

}  // namespace
}  // namespace berth::place_test
