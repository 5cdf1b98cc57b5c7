#include "integration/plugin_fixture.hpp"

#include "base/files.hpp"
#include "plugins/manifest/manifest_file.hpp"
#include "plugins/supervisor.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

// Workers on the published third-party SDK, in the two dialects that npm has. The provider is ours,
// tests/compat/provider; the SDK is unmodified.
namespace berth::plugin_test {
namespace {

using namespace std::chrono_literals;
using places::Command;
using places::Ended;
using places::Outcome;
using places::OutputPiece;
using places::PlaceRef;

// Nothing when both are installed, else why not.
std::string install() {
  const std::string command = BERTH_COMPAT "/install " BERTH_COMPAT_FOLDER " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string said;
  std::array<char, 512> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) said += buffer.data();
  return ::pclose(pipe) == 0 ? "" : "the SDK could not be installed: " + said;
}

class Collected final : public places::OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> pieces) override {
    for (const OutputPiece& piece : pieces) all += piece.bytes;
    co_return Result<>{};
  }
  std::string all;
};

class PluginSdkTest : public PluginTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static void SetUpTestSuite() { why_not_ = install(); }

  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << why_not_;
    PluginTest::SetUp();
    // Where the worker's unprivileged user can read it, wherever the build is.
    package_ = folder_.file("sdk");
    std::filesystem::copy(std::string{BERTH_COMPAT_FOLDER "/"} + GetParam(), package_,
                          std::filesystem::copy_options::recursive);
    way_ = launching();
    way_.path = config_.environment["PATH"];
    Result<Manifest> manifest = await(read_manifest(loop_.get_executor(), package_, way_));
    ASSERT_TRUE(manifest) << manifest.error().message;
    open_host();
    InstalledPlugin plugin{.id = id_,
                           .manifest = *std::move(manifest),
                           .package = {.folder = package_, .name = "berth-compat"}};
    const Result<> started = await(host_->start(std::move(plugin)));
    ASSERT_TRUE(started) << started.error().message;
    remote_ = std::make_unique<places::remote::RemotePlace>(
        *host_, places::remote::Addressing::provider_key);
  }
  void TearDown() override {
    if (remote_) EXPECT_TRUE(await(remote_->close()));
    remote_.reset();
    PluginTest::TearDown();
  }
  PlaceRef acquired() {
    PlaceRef lease{.key = core::LeaseId::make(random_, clock_.now()),
                   .company_id = company_,
                   .run_id = core::RunId::make(random_, clock_.now()),
                   .config = {{"provider", "compat"}, {"root", folder_.file("work")}}};
    const Result<places::remote::RemoteLease> made = await(remote_->make_lease(lease));
    EXPECT_TRUE(made) << made.error().message;
    if (!made) return lease;
    lease.provider_lease_id = made->provider_lease_id;
    lease.metadata = made->metadata;
    return lease;
  }

  static inline std::string why_not_;
  std::string package_;
  Launching way_;
  std::unique_ptr<places::remote::RemotePlace> remote_;
};

TEST_P(PluginSdkTest, AWorkerStartsAsksDuringSetupAndIsKnownForItsDialect) {
  const auto status = host_->status(id_);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, WorkerState::running);
  EXPECT_EQ(host_->find(id_)->dialect(),
            std::string_view{GetParam()} == "a" ? Dialect::a : Dialect::c);
  EXPECT_TRUE(services_.has_log("compat is set up"));
  const Result<bj::object> health = await(host_->health(id_));
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_TRUE(std::string_view{health->at("message").as_string()}.contains("state.get"));
  ASSERT_TRUE(await(host_->config_changed(id_, company_, bj::object{{"x", 1}})));
  EXPECT_FALSE(services_.has_log("configChanged for"));
}

TEST_P(PluginSdkTest, ALeaseLivesThroughAllItsVerbs) {
  const auto verdict = await(remote_->validate({{"provider", "compat"}}));
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->normalized->at("image"), "default");
  PlaceRef lease = acquired();
  lease.config["reuseLease"] = true;  // else it is never resumed
  const auto place = await(remote_->realize(lease, std::nullopt));
  ASSERT_TRUE(place) << place.error().message;
  Command command{.exec_id = "x", .argv = {"sh", "-c", "cat; pwd; exit 4"}};
  // A separator that ends a line for some readers: it has to arrive unchanged.
  command.input = places::StdinBytes{Secret{"a\xE2\x80\xA8z\n"}};
  ASSERT_TRUE(await(remote_->start(lease, command)));
  Collected output;
  const Result<Ended> ended = await(remote_->follow(lease, "x", 0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->exit_code, 4);
  EXPECT_EQ(output.all, "a\xE2\x80\xA8z\n" + place->cwd + "\n");
  const auto resumed = await(remote_->resume(lease, *lease.provider_lease_id));
  ASSERT_TRUE(resumed && resumed->has_value());
  ASSERT_TRUE(await(remote_->destroy_lease(lease)));
  const auto gone = await(remote_->resume(lease, *lease.provider_lease_id));
  ASSERT_TRUE(gone);
  EXPECT_FALSE(gone->has_value());
}

TEST_P(PluginSdkTest, ARunningCommandCanBeCancelled) {
  const PlaceRef lease = acquired();
  const Command command{.exec_id = "x", .argv = {"sh", "-c", "echo ready; sleep 1000"}};
  ASSERT_TRUE(await(remote_->start(lease, command)));
  Collected output;
  std::optional<Result<Ended>> ended;
  const std::string id = "x";
  asio::co_spawn(loop_, remote_->follow(lease, id, 0, output),
                 [&](std::exception_ptr, Result<Ended> how) { ended = std::move(how); });
  ASSERT_TRUE(run_until([&] { return output.all == "ready\n"; })) << "live output";
  ASSERT_TRUE(await(remote_->cancel(lease, "x", 10'000)));
  ASSERT_TRUE(run_until([&] { return ended.has_value(); }));
  EXPECT_EQ((*ended)->outcome, Outcome::stopped);
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_P(PluginSdkTest, ALoginTerminalSpeaksAndIsClosed) {
  const PlaceRef lease = acquired();
  auto opened = await(remote_->open_login(lease, places::LoginCommand::claude));
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(await((*opened)->send(std::string{"code"})));
  Collected output;
  const Result<Ended> ended = await((*opened)->follow(0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->exit_code, 0);
  EXPECT_TRUE(output.all.contains("token for code\n")) << output.all;
  EXPECT_TRUE(run_until([&] { return services_.has_log("closed a route"); }));
  EXPECT_FALSE(services_.has_log("token for"));
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_P(PluginSdkTest, ACommandIsFedAsItRunsWhereTheDialectHasByteStreams) {
  const PlaceRef lease = acquired();
  const Command command{.exec_id = "x", .argv = {"sh", "-c", "cat; exit 4"}, .cwd = "/"};
  auto opened = await(remote_->open_stream(lease, command, places::DuplexBridge::on));
  if (std::string_view{GetParam()} == "a") {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::execution_unsupported);
    EXPECT_TRUE(await(remote_->destroy_lease(lease)));
    return;
  }
  ASSERT_TRUE(opened) << opened.error().message;
  Collected output;
  std::optional<Result<Ended>> ended;
  asio::co_spawn(loop_, (*opened)->follow(0, output),
                 [&](std::exception_ptr, Result<Ended> how) { ended = std::move(how); });
  const std::string bytes("\0\xff\n", 3);
  ASSERT_TRUE(await((*opened)->send(bytes)));
  ASSERT_TRUE(run_until([&] { return output.all == bytes; }));
  ASSERT_TRUE(await((*opened)->send(places::EndOfInput{})));
  ASSERT_TRUE(run_until([&] { return ended.has_value(); }));
  ASSERT_TRUE(*ended) << ended->error().message;
  EXPECT_EQ((*ended)->exit_code, 4);
  EXPECT_TRUE(run_until([&] { return services_.has_log("closed a route"); }));
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_P(PluginSdkTest, FilesGoInAndComeBackByItsOwnWayAndByCommands) {
  PlaceRef lease = acquired();
  const std::string inside{lease.metadata.at("remoteCwd").as_string()};
  places::RemoteFiles& files = *remote_->abilities().remote_files;
  const std::string bytes(100'000, '\xfe');
  const places::RemotePath written{.folder = inside, .rest = "in/by commands"};
  const auto put = await(files.write(lease, written, 0640, bytes));
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_EQ(files.exchange(lease, written).by, places::Exchange::By::provider);
  const std::string back = folder_.file("work/back");
  const auto fetched = await(files.fetch(lease, {.folder = inside, .rest = "in"}, S_IFDIR, back));
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_TRUE(*read_file(back + "/by commands", 4'000'000) == bytes);
  const places::RemotePath again{.folder = inside, .rest = "again"};
  const auto sent = await(files.send_folder(lease, again, back));
  ASSERT_TRUE(sent) << sent.error().message;
  const places::RemotePath copy{.folder = inside, .rest = "again/by commands"};
  const auto seen = await(files.look(lease, copy));
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->entry.status.st_mode, S_IFREG | 0640U);
  EXPECT_TRUE(*await(files.read(lease, copy, 0, bytes.size())) == bytes);
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

INSTANTIATE_TEST_SUITE_P(Versions, PluginSdkTest, ::testing::Values("a", "c"));

}  // namespace
}  // namespace berth::plugin_test
