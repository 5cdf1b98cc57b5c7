#include "integration/plugin_fixture.hpp"

// Interactive commands in plugin sandboxes.
namespace berth::plugin_test {
namespace {

using namespace std::chrono_literals;
using places::Command;
using places::DuplexBridge;
using places::Ended;
using places::LiveCommandPtr;
using places::LoginCommand;
using places::Outcome;
using places::OutputPiece;
using places::PlaceRef;

class LiveOutput final : public places::OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> pieces) override {
    for (const OutputPiece& piece : pieces) all += piece.bytes;
    co_return Result<>{};
  }
  std::string all;
};

class PluginLiveTest : public PluginTest {
 protected:
  void open(const std::string& options = "") {
    start(options);
    remote_ = std::make_unique<places::remote::RemotePlace>(
        *host_, places::remote::Addressing::provider_key);
    lease_ = facts();
    const Result<places::remote::RemoteLease> made = await(remote_->make_lease(*lease_));
    ASSERT_TRUE(made) << made.error().message;
    lease_->provider_lease_id = made->provider_lease_id;
    lease_->metadata = made->metadata;
  }
  void TearDown() override {
    live_.reset();
    if (remote_) {
      if (lease_ && host_->status(id_)) EXPECT_TRUE(await(remote_->destroy_lease(*lease_)));
      EXPECT_TRUE(await(remote_->close()));
    }
    remote_.reset();
    PluginTest::TearDown();
  }
  PlaceRef facts() {
    return {.key = core::LeaseId::make(random_, clock_.now()),
            .company_id = company_,
            .run_id = core::RunId::make(random_, clock_.now()),
            .config = {{"provider", "boxes"}}};
  }
  Result<LiveCommandPtr> log_in(LoginCommand command = LoginCommand::claude) {
    return await(remote_->open_login(*lease_, command));
  }
  Result<LiveCommandPtr> stream(const std::string& script, DuplexBridge bridge = DuplexBridge::on) {
    const std::string cwd{lease_->metadata.at("remoteCwd").as_string()};
    const Command command{.exec_id = "x", .argv = {"sh", "-c", script}, .cwd = cwd};
    return await(remote_->open_stream(*lease_, command, bridge));
  }
  void follow() {
    asio::co_spawn(loop_, live_->follow(0, output_),
                   [this](std::exception_ptr, Result<Ended> how) { ended_ = std::move(how); });
  }
  bool has_ended() {
    return run_until([this] { return ended_.has_value(); });
  }
  // What the worker reports once it has closed something.
  bool says(const std::string& text) {
    return run_until([&] { return services_.has_log(text); });
  }

  std::unique_ptr<places::remote::RemotePlace> remote_;
  std::optional<PlaceRef> lease_;
  LiveCommandPtr live_;
  LiveOutput output_;
  std::optional<Result<Ended>> ended_;
};

class PluginLiveDialectTest : public PluginLiveTest,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(PluginLiveDialectTest, ALoginSpeaksAsThePluginDoes) {
  const std::string dialect = GetParam();
  open("dialect=" + dialect);
  Result<LiveCommandPtr> opened = log_in();
  ASSERT_TRUE(opened) << opened.error().message;
  live_ = *std::move(opened);
  const auto second = log_in();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::conflict);
  EXPECT_TRUE(second.error().message.contains("another login")) << second.error().message;
  follow();
  ASSERT_TRUE(await(live_->send(core::TerminalSize{}))) << "its size is nobody's business";
  // A split character arrives whole.
  ASSERT_TRUE(await(live_->send(std::string{"\xC3"})));
  ASSERT_TRUE(await(live_->send(std::string{"\xA9"})));
  ASSERT_TRUE(has_ended());
  ASSERT_TRUE(*ended_) << ended_->error().message;
  EXPECT_EQ((*ended_)->exit_code, 0);
  EXPECT_EQ(output_.all, dialect == "c" ? "login with claude\ngot \xC3\xA9"
                                        : "login with claude setup-token\ngot \xC3\xA9");
  EXPECT_TRUE(says("closed a login")) << "also before anybody lets go of it";
  EXPECT_FALSE(services_.has_log("login with")) << "what it says is not logged";
  Result<LiveCommandPtr> other = log_in(LoginCommand::codex);
  // Its end is seen a moment before its place is free again.
  run_until([&] {
    const bool is_taken = !other && other.error().code == Errc::conflict;
    if (is_taken) other = log_in(LoginCommand::codex);
    return !is_taken;
  });
  EXPECT_EQ(other.has_value(), dialect == "c") << "older plugins have one command";
}

TEST_P(PluginLiveDialectTest, ACommandIsFedUntilItsInputEnds) {
  const std::string dialect = GetParam();
  open("dialect=" + dialect);
  Result<LiveCommandPtr> opened = stream("head -n 1; cat; pwd; echo err >&2; exit 3");
  if (dialect == "a") {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::execution_unsupported);
    EXPECT_TRUE(opened.error().message.contains("does not answer duplexChannelOpen"));
    return;
  }
  ASSERT_TRUE(opened) << opened.error().message;
  live_ = *std::move(opened);
  follow();
  ASSERT_TRUE(await(live_->send(std::string{"first\n"})));
  ASSERT_TRUE(run_until([&] { return output_.all == "early first\n"; }))
      << "it answers before its input has ended";
  const std::string rest = dialect == "c" ? std::string("\0\xff\n", 3) : "rest\n";
  ASSERT_TRUE(await(live_->send(rest)));
  ASSERT_TRUE(await(live_->send(places::EndOfInput{})));
  ASSERT_TRUE(has_ended());
  ASSERT_TRUE(*ended_) << ended_->error().message;
  EXPECT_EQ((*ended_)->exit_code, 3);
  const std::string cwd{lease_->metadata.at("remoteCwd").as_string()};
  EXPECT_EQ(output_.all, "early first\n" + rest + cwd + "\nerr\n");
  EXPECT_TRUE(says("closed a stream"));
}

INSTANTIATE_TEST_SUITE_P(Plugin, PluginLiveDialectTest, ::testing::Values("a", "b", "c"));

TEST_F(PluginLiveTest, ACommandMayEndBeforeItsInput) {
  open();
  Result<LiveCommandPtr> opened = stream("exit 5");
  ASSERT_TRUE(opened) << opened.error().message;
  live_ = *std::move(opened);
  follow();
  ASSERT_TRUE(has_ended());
  ASSERT_TRUE(*ended_) << ended_->error().message;
  EXPECT_EQ((*ended_)->exit_code, 5);
}

TEST_F(PluginLiveTest, WhoeverGoesLeavesNothingOpen) {
  open();
  Result<LiveCommandPtr> opened = stream("cat");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(host_->open_streams(), 1U);
  opened->reset();
  EXPECT_TRUE(says("closed a stream"));
  Result<LiveCommandPtr> login = log_in();
  ASSERT_TRUE(login) << login.error().message;
  login->reset();
  EXPECT_TRUE(says("closed a login"));
  ASSERT_TRUE(run_until([&] { return log_in().has_value(); })) << "it is busy no more";
  EXPECT_EQ(host_->open_streams(), 0U);
}

TEST_F(PluginLiveTest, WhatIsOpenIsClosedBeforeItsLeaseGoes) {
  open();
  Result<LiveCommandPtr> opened = stream("cat");
  ASSERT_TRUE(opened) << opened.error().message;
  live_ = *std::move(opened);
  follow();
  ASSERT_TRUE(await(remote_->release_lease(*lease_)));
  EXPECT_TRUE(services_.has_log("closed a stream"));
  ASSERT_TRUE(has_ended());
  ASSERT_TRUE(*ended_) << ended_->error().message;
}

TEST_F(PluginLiveTest, AWorkerThatDiesEndsALoginAndTheNextOneIsNotBlamed) {
  open();
  Result<LiveCommandPtr> opened = log_in();
  ASSERT_TRUE(opened) << opened.error().message;
  live_ = *std::move(opened);
  follow();
  const CallResult crashed = call("crash");
  EXPECT_FALSE(crashed);
  ASSERT_TRUE(has_ended());
  ASSERT_FALSE(*ended_);
  EXPECT_EQ(ended_->error().code, Errc::plugin_unavailable) << ended_->error().message;
  live_.reset();
  ASSERT_TRUE(state_becomes(WorkerState::running));
  ASSERT_TRUE(run_until([&] { return log_in().has_value(); }));
  EXPECT_EQ(host_->status(id_)->crashes, 1) << "nothing was to be closed in the new worker";
}

TEST_F(PluginLiveTest, ALoginThatSaysTooMuchIsEndedAndClosed) {
  open();
  Result<LiveCommandPtr> opened = log_in();
  ASSERT_TRUE(opened) << opened.error().message;
  live_ = *std::move(opened);
  follow();
  ASSERT_TRUE(await(live_->send(std::string{"flood"})));
  ASSERT_TRUE(has_ended());
  ASSERT_FALSE(*ended_);
  EXPECT_EQ(ended_->error().code, Errc::plugin_protocol) << ended_->error().message;
  EXPECT_LE(output_.all.size(), std::size_t{8} << 20);
  EXPECT_TRUE(says("closed a login"));
  EXPECT_FALSE(services_.has_log("xxxx"));
}

TEST_F(PluginLiveTest, AFrameForAStreamThatWasNeverOpenEndsTheWorkerWhichIsBack) {
  open("stray=yes");
  Result<LiveCommandPtr> opened = stream("cat");
  ASSERT_TRUE(opened) << opened.error().message;
  (void)await((*opened)->send(std::string{"x"}));
  ASSERT_TRUE(run_until([&] { return host_->status(id_)->crashes == 1; }));
  ASSERT_TRUE(state_becomes(WorkerState::running));
  EXPECT_TRUE(services_.last_reason.contains("never opened")) << services_.last_reason;
}

TEST_F(PluginLiveTest, ACloseThatIsNotConfirmedWithBothIdsEndsTheWorker) {
  open("close=wrong");
  Result<LiveCommandPtr> opened = stream("cat");
  ASSERT_TRUE(opened) << opened.error().message;
  opened->reset();
  ASSERT_TRUE(run_until([&] { return host_->status(id_)->crashes == 1; }));
}

TEST_F(PluginLiveTest, AWorkerThatRefusesToOpenIsLeftAlone) {
  open("duplex=refuse");
  const Result<LiveCommandPtr> opened = stream("cat");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::plugin_call_failed);
  EXPECT_EQ(host_->open_streams(), 0U);
  EXPECT_EQ(host_->status(id_)->crashes, 0);
}

TEST_F(PluginLiveTest, ARefusalSaysWhatIsMissing) {
  open();
  const auto off = stream("cat", DuplexBridge::off);
  ASSERT_FALSE(off);
  EXPECT_EQ(off.error().code, Errc::execution_unsupported);
  EXPECT_TRUE(off.error().remedy.contains("enableSandboxDuplexBridge=true")) << off.error().remedy;
  EXPECT_TRUE(await(remote_->destroy_lease(*lease_)));
  EXPECT_TRUE(await(remote_->close()));
  EXPECT_TRUE(await(host_->stop(id_)));
  open("declares=nothing");
  const auto undeclared = stream("cat");
  ASSERT_FALSE(undeclared);
  EXPECT_TRUE(undeclared.error().message.contains("does not declare duplexCommandStream"))
      << undeclared.error().message;
  const auto login = log_in();
  ASSERT_FALSE(login);
  EXPECT_EQ(login.error().code, Errc::execution_unsupported);
  EXPECT_TRUE(login.error().message.contains("supportsLoginPty")) << login.error().message;
}

}  // namespace
}  // namespace berth::plugin_test
