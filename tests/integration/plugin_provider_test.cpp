#include "integration/plugin_fixture.hpp"
#include "places/registry.hpp"

#include "base/files.hpp"

#include <boost/json/serialize.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace berth::plugin_test {
namespace {

using namespace std::chrono_literals;
using places::Command;
using places::Ended;
using places::Outcome;
using places::OutputKind;
using places::OutputPiece;
using places::PlaceRef;
using places::RemotePath;

constexpr const char* secret_text = "tok-5f1d7c";

class Collected final : public places::OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> pieces) override {
    for (const OutputPiece& piece : pieces) {
      ends.push_back(piece.next_offset);
      (piece.kind == OutputKind::out   ? out
       : piece.kind == OutputKind::err ? err
                                       : notes) += piece.bytes;
    }
    co_return Result<>{};
  }
  std::string out;
  std::string err;
  std::string notes;
  std::vector<std::uint64_t> ends;
};

class PluginProviderTest : public PluginTest {
 protected:
  void open(const std::string& options = "") {
    start(options);
    remote_ = std::make_unique<places::remote::RemotePlace>(
        *host_, places::remote::Addressing::provider_key);
  }
  void TearDown() override {
    if (remote_) {
      const Result<> closed = await(remote_->close());
      EXPECT_TRUE(closed) << closed.error().message;
    }
    remote_.reset();
    PluginTest::TearDown();
  }
  PlaceRef facts(bj::object config = {}) {
    config["provider"] = "boxes";
    config.emplace("apiKey", "0b5f1c7e-0000-4000-8000-000000000001");
    PlaceRef lease{.key = core::LeaseId::make(random_, clock_.now()),
                   .driver = core::DriverKind::sandbox,
                   .company_id = company_,
                   .run_id = core::RunId::make(random_, clock_.now()),
                   .config = std::move(config)};
    lease.secrets.emplace("apiKey", Secret{secret_text});
    return lease;
  }
  // A lease as it is after it was acquired.
  PlaceRef acquired(bj::object config = {}) {
    PlaceRef lease = facts(std::move(config));
    const Result<places::remote::RemoteLease> made = await(remote_->make_lease(lease));
    EXPECT_TRUE(made) << made.error().message;
    if (!made) return lease;
    lease.provider_lease_id = made->provider_lease_id;
    lease.metadata = made->metadata;
    return lease;
  }
  static Command shell(std::string exec_id, std::string script) {
    return {.exec_id = std::move(exec_id), .argv = {"sh", "-c", std::move(script)}};
  }
  Result<Ended> run(const PlaceRef& lease, Command command, Collected& output) {
    const std::string id = command.exec_id;
    const auto started = await(remote_->start(lease, command));
    if (!started) return std::unexpected(started.error());
    return await(remote_->follow(lease, id, 0, output));
  }

  std::unique_ptr<places::remote::RemotePlace> remote_;
};

TEST_F(PluginProviderTest, ValidatesAConfigAndBringsItIntoShape) {
  open();
  const auto good = await(remote_->validate({{"provider", "boxes"}, {"image", "i"}}));
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_TRUE(good->ok);
  ASSERT_TRUE(good->normalized);
  EXPECT_EQ(good->normalized->at("timeoutMs"), 60000);
  EXPECT_FALSE(good->normalized->contains("provider"));
  const auto bad = await(remote_->validate({{"provider", "boxes"}, {"image", "bad"}}));
  ASSERT_TRUE(bad);
  EXPECT_FALSE(bad->ok);
  EXPECT_EQ(bad->errors, std::vector<std::string>{"image is bad"});
}

TEST_F(PluginProviderTest, AProbeShowsWhatThePluginSaysButNoSecret) {
  open();
  const auto verdict = await(remote_->verdict_on(facts()));
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->ok);
  EXPECT_FALSE(verdict->summary.contains(secret_text)) << verdict->summary;
  ASSERT_EQ(verdict->steps.size(), 1U);
  EXPECT_EQ(verdict->steps[0].code, "c1");
}

TEST_F(PluginProviderTest, KeysOfTheHostAreNotTheProviderSToWrite) {
  open();
  const PlaceRef lease = acquired({{"image", "ours"}});
  EXPECT_EQ(lease.metadata.at("pluginId"), bj::string(id_.str()));
  EXPECT_EQ(lease.metadata.at("provider"), "boxes");
  EXPECT_EQ(lease.metadata.at("image"), "ours");
  EXPECT_EQ(lease.metadata.at("providerMetadata").at("pluginId"), "forged");
  EXPECT_EQ(lease.metadata.at("providerMetadata").at("secretEcho"), "[secret]");
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, ACommandRunsAndItsOutputCanBeReadFromAnyRecord) {
  open();
  const PlaceRef lease = acquired();
  const auto place = await(remote_->realize(lease, std::nullopt));
  ASSERT_TRUE(place) << place.error().message;
  Command command = shell("one", "cat; echo err >&2; echo $WORD; pwd; exit 3");
  command.cwd = place->cwd;
  command.environment.emplace("WORD", Secret{"hidden"});
  command.input = places::StdinBytes{Secret{"given\n"}};
  Collected all;
  const Result<Ended> ended = run(lease, std::move(command), all);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::exited);
  EXPECT_EQ(ended->exit_code, 3);
  EXPECT_EQ(all.out, "given\nhidden\n" + place->cwd + "\n");
  EXPECT_EQ(all.err, "err\n");
  ASSERT_FALSE(all.ends.empty());
  Collected rest;
  EXPECT_TRUE(await(remote_->follow(lease, "one", all.ends.back(), rest)));
  EXPECT_EQ(rest.out + rest.err, "");
  Collected none;
  const auto never = await(remote_->follow(lease, "two", 0, none));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Errc::exec_not_found);
  ASSERT_TRUE(await(remote_->release_lease(lease)));
  EXPECT_FALSE(std::filesystem::exists(config_.folder + "/" + lease.key.str()));
}

TEST_F(PluginProviderTest, OutputIsThereWhileTheCommandStillRuns) {
  open();
  const PlaceRef lease = acquired();
  const std::string gate = folder_.file("work/gate");
  ASSERT_EQ(::mkfifo(gate.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(gate.c_str(), 0666), 0);
  ASSERT_TRUE(await(remote_->start(lease, shell("live", "echo first; cat " + gate))));
  Collected output;
  std::optional<Result<Ended>> ended;
  const std::string id = "live";
  asio::co_spawn(loop_, remote_->follow(lease, id, 0, output),
                 [&](std::exception_ptr, Result<Ended> how) { ended = std::move(how); });
  EXPECT_TRUE(run_until([&] { return output.out == "first\n"; }));
  EXPECT_FALSE(ended);
  std::ofstream{gate} << "second\n";
  ASSERT_TRUE(run_until([&] { return ended.has_value(); }));
  EXPECT_EQ(output.out, "first\nsecond\n") << "the final result must not repeat what was streamed";
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, ACommandIsStartedOnce) {
  open();
  const PlaceRef lease = acquired();
  const std::string file = folder_.file("work/count");
  std::ofstream{file}.flush();
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  Collected output;
  ASSERT_TRUE(run(lease, shell("x", "echo run >>" + file), output));
  ASSERT_TRUE(run(lease, shell("x", "echo run >>" + file), output));
  EXPECT_EQ(*read_file(file, 100), "run\n");
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, ACommandOverItsTimeHasTimedOut) {
  open();
  const PlaceRef lease = acquired();
  Command command = shell("slow", "exec sleep 1000");
  command.timeout_ms = 200;
  Collected output;
  const Result<Ended> ended = run(lease, std::move(command), output);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::timed_out);
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, ACommandCanBeCancelledWithAllItsProcesses) {
  open();
  const PlaceRef lease = acquired();
  const std::string ready = folder_.file("work/ready");
  ASSERT_EQ(::mkfifo(ready.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(ready.c_str(), 0666), 0);
  ASSERT_TRUE(await(remote_->start(lease, shell("long", "sleep 1000 & echo ready; wait"))));
  Collected output;
  std::optional<Result<Ended>> ended;
  const std::string id = "long";
  asio::co_spawn(loop_, remote_->follow(lease, id, 0, output),
                 [&](std::exception_ptr, Result<Ended> how) { ended = std::move(how); });
  ASSERT_TRUE(run_until([&] { return output.out == "ready\n"; }));
  ASSERT_TRUE(await(remote_->cancel(lease, "long", 10'000)));
  ASSERT_TRUE(run_until([&] { return ended.has_value(); }));
  EXPECT_EQ((*ended)->outcome, Outcome::stopped);
  EXPECT_FALSE(output.notes.contains("did not end")) << output.notes;
  EXPECT_TRUE(await(remote_->cancel(lease, "long", 0))) << "nothing to end is fine";
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, AWorkerThatDiesUnderACommandLosesIt) {
  open();
  PlaceRef lease = acquired();
  lease.metadata["providerConfig"].as_object()["fault"] = "die:environmentExecute";
  Collected output;
  const Result<Ended> ended = run(lease, shell("x", "true"), output);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lost);
  EXPECT_TRUE(output.notes.contains("Worker process exited")) << output.notes;
}

TEST_F(PluginProviderTest, ACommandOfAServerThatIsGoneIsLostAndNotRunAgain) {
  open();
  const PlaceRef lease = acquired();
  ASSERT_TRUE(await(remote_->start(lease, shell("x", "sleep 1000"))));
  ASSERT_TRUE(await(remote_->close()));
  remote_ = std::make_unique<places::remote::RemotePlace>(*host_,
                                                          places::remote::Addressing::provider_key);
  Collected output;
  const Result<Ended> ended = run(lease, shell("x", "echo again"), output);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, Outcome::lost);
  EXPECT_EQ(output.out, "");
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, ACommandThatThePluginRefusesIsAnError) {
  open();
  PlaceRef lease = acquired();
  Command command{.exec_id = "x", .argv = {"/no/such/program"}};
  Collected output;
  const Result<Ended> ended = run(lease, std::move(command), output);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::plugin_call_failed);
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, ASandboxIsResumedOrKnownToBeGone) {
  open("receipt=yes");
  EXPECT_TRUE(remote_->may_reuse({{"provider", "boxes"}, {"reuseLease", true}}));
  EXPECT_FALSE(remote_->may_reuse({{"provider", "boxes"}}));
  const PlaceRef lease = acquired({{"reuseLease", true}});
  const auto resumed = await(remote_->resume(lease, *lease.provider_lease_id));
  ASSERT_TRUE(resumed) << resumed.error().message;
  ASSERT_TRUE(resumed->has_value());
  EXPECT_EQ((*resumed)->provider_lease_id, lease.provider_lease_id);
  const auto receipt = await(remote_->destroy_lease(lease));
  ASSERT_TRUE(receipt) << receipt.error().message;
  ASSERT_TRUE(receipt->has_value());
  EXPECT_EQ((*receipt)->state, "destroyed");
  const auto gone = await(remote_->resume(lease, *lease.provider_lease_id));
  ASSERT_TRUE(gone);
  EXPECT_FALSE(gone->has_value());
}

TEST_F(PluginProviderTest, APluginThatIsGoneIsNamedAndItsSandboxesAreNobodyElseS) {
  open();
  const PlaceRef lease = acquired();
  EXPECT_TRUE(remote_->capabilities(lease, core::LeasePolicy::ephemeral).duplex_command_stream);
  ASSERT_TRUE(await(host_->stop(id_)));
  const auto released = await(remote_->release_lease(lease));
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Errc::plugin_not_found);
  EXPECT_EQ(remote_->capabilities(lease, core::LeasePolicy::ephemeral),
            core::SandboxCapabilities{});
  const auto fresh = await(remote_->make_lease(facts()));
  ASSERT_FALSE(fresh);
  EXPECT_EQ(fresh.error().code, Errc::provider_unavailable);
}

TEST_F(PluginProviderTest, AnAnswerOfTheWrongShapeIsThePluginSFault) {
  open();
  const auto made = await(remote_->make_lease(facts({{"fault", "null:environmentAcquireLease"}})));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::plugin_protocol);
  const auto thrown =
      await(remote_->make_lease(facts({{"fault", "throw:environmentAcquireLease"}})));
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code, Errc::plugin_call_failed);
  EXPECT_TRUE(thrown.error().message.contains("thrown on purpose"));
}

TEST_F(PluginProviderTest, FilesGoInAndOutByCommandsWhereThePluginHasNoWayOfItsOwn) {
  open();
  const PlaceRef lease = acquired();
  const std::string inside{lease.metadata.at("remoteCwd").as_string()};
  places::RemoteFiles& files = *remote_->abilities().remote_files;
  EXPECT_EQ(files.exchange(lease, {.folder = inside}).by, places::Exchange::By::commands);
  const std::string large(100'000, '\xff');
  const RemotePath file{.folder = inside, .rest = "deep/na me\n\xff"};
  const auto put = await(files.write(lease, file, 0640, large));
  ASSERT_TRUE(put) << put.error().message;
  const auto seen = await(files.look(lease, file));
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->way, places::RemoteLook::Way::there);
  EXPECT_EQ(seen->entry.status.st_mode, S_IFREG | 0640U);
  EXPECT_EQ(seen->entry.status.st_size, 100'000);
  const auto back = await(files.read(lease, file, 0, large.size()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(*back == large);
  const auto beyond = await(files.read(lease, file, 99'000, 2'000));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Errc::conflict);
  const RemotePath folder{.folder = inside, .rest = "deep"};
  const auto tar = await(files.pack(lease, folder, 800'000));
  ASSERT_TRUE(tar) << tar.error().message;
  const RemotePath copy{.folder = inside, .rest = "made/copy"};
  const auto unpacked = await(files.unpack(lease, copy, *tar));
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  const auto listed = await(files.list(lease, copy, 10));
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->entries.size(), 1U);
  EXPECT_EQ(listed->entries[0].name, "na me\n\xff");
  const auto cut = await(files.pack(lease, folder, 1'000));
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_GT(cut->size(), 1'000U);
  const auto through = await(files.unpack(lease, {.folder = inside, .rest = "made"}, "no tar"));
  EXPECT_FALSE(through);
  EXPECT_EQ(await(files.list(lease, {.folder = inside, .rest = "made"}, 10))->entries.size(), 1U)
      << "what could not be unpacked left something";
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, FilesGoByThePluginSOwnWayWhereItHasBothDirections) {
  open("sync=native");
  PlaceRef lease = acquired();
  const std::string inside{lease.metadata.at("remoteCwd").as_string()};
  places::RemoteFiles& files = *remote_->abilities().remote_files;
  const RemotePath file{.folder = inside, .rest = "sub/a.txt"};
  EXPECT_EQ(files.exchange(lease, file).by, places::Exchange::By::provider);
  std::ofstream{folder_.file("work/here")} << "hello";
  const std::string here = folder_.file("work/here");
  const auto in = await(files.send_file(lease, file, 0600, here, 5));
  ASSERT_TRUE(in) << in.error().message;
  EXPECT_EQ(*await(files.read(lease, file, 0, 5)), "hello");
  const auto lied = await(files.send_file(lease, file, 0600, here, 6));
  ASSERT_FALSE(lied);
  EXPECT_EQ(lied.error().code, Errc::plugin_call_failed) << lied.error().message;
  EXPECT_EQ(await(files.list(lease, {.folder = inside, .rest = "sub"}, 10))->entries.size(), 1U);
  const std::string back = folder_.file("work/back");
  ASSERT_TRUE(await(files.fetch(lease, file, S_IFREG, back)));
  EXPECT_EQ(*read_file(back, 100), "hello");
  // A sandbox whose provider refuses, and a name that cannot be sent as text.
  EXPECT_EQ(files.exchange(lease, {.folder = inside, .rest = "\xff"}).by,
            places::Exchange::By::commands);
  lease.metadata["providerMetadata"].as_object()["nativeFileSyncUnsupported"] = true;
  EXPECT_EQ(files.exchange(lease, file).by, places::Exchange::By::commands);
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));
}

TEST_F(PluginProviderTest, AWorkerThatDiesUnderATransferIsTold) {
  open("sync=native");
  const PlaceRef lease = acquired();
  const std::string inside{lease.metadata.at("remoteCwd").as_string()};
  places::RemoteFiles& files = *remote_->abilities().remote_files;
  const RemotePath file{.folder = inside, .rest = "x"};
  const std::string local = folder_.file("work/x");
  for (const std::string method : {"SyncIn", "SyncOut", "Execute"}) {
    PlaceRef cursed = lease.clone();
    cursed.metadata["providerConfig"].as_object()["fault"] = "die:environment" + method;
    const auto done = method == "SyncIn"    ? await(files.send_file(cursed, file, 0600, local, 0))
                      : method == "SyncOut" ? await(files.fetch(cursed, file, S_IFREG, local))
                                            : await(files.write(cursed, file, 0600, "x"));
    ASSERT_FALSE(done) << method;
    EXPECT_EQ(done.error().code, Errc::plugin_unavailable) << done.error().message;
    // The last one dies again during cleanup, which is once too often.
    if (method != "Execute") ASSERT_TRUE(state_becomes(WorkerState::running)) << method;
  }
}

TEST_F(PluginProviderTest, ATemplateIsDeletedByWhoeverMadeIt) {
  open();
  const PlaceRef lease = acquired();
  const auto key = core::TemplateId::make(random_, clock_.now());
  const auto made = await(remote_->capture_template(lease, {.key = key, .label = "mine"}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->ref, "t-1");
  EXPECT_EQ(made->kind, core::TemplateKind::snapshot);
  EXPECT_EQ(made->binding.field, "image");
  EXPECT_EQ(made->binding.unset_fields, std::vector<std::string>{"size"});
  EXPECT_EQ(made->metadata.at("pluginId").as_string(), id_.str());
  EXPECT_TRUE(await(remote_->destroy_lease(lease)));

  PlaceRef place = facts();
  place.metadata = made->metadata;
  places::DeleteTemplate wanted{
      .key = key, .ref = made->ref, .kind = made->kind, .metadata = made->metadata};
  const auto deleted = await(remote_->delete_template(place, wanted));
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_TRUE(*deleted);
  wanted.ref.reset();
  const auto unnamed = await(remote_->delete_template(place, wanted));
  ASSERT_TRUE(unnamed) << unnamed.error().message;
  EXPECT_FALSE(*unnamed);
}

TEST_F(PluginProviderTest, ASetupIsEnteredCapturedAndEndedByItsOwnVerbs) {
  open();
  PlaceRef lease = facts();
  const auto opened = await(
      remote_->open_setup(lease, {.session_id = "s1", .source_ref = "t-0", .expires_at = {}}));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->provider_lease_id, "setup://s1");
  EXPECT_EQ(opened->metadata.at("providerMetadata").at("from").as_string(), "t-0");
  EXPECT_FALSE(bj::serialize(opened->metadata).contains("never kept"));
  lease.provider_lease_id = opened->provider_lease_id;
  lease.metadata = opened->metadata;
  const auto door = await(remote_->setup_access(lease));
  ASSERT_TRUE(door) << door.error().message;
  EXPECT_EQ(door->command, "ssh py@box");
  const auto key = core::TemplateId::make(random_, clock_.now());
  EXPECT_TRUE(await(remote_->capture_template(lease, {.key = key})));
  EXPECT_TRUE(await(remote_->release_lease(lease)));
  EXPECT_FALSE(await(remote_->capture_template(lease, {.key = key})));
  EXPECT_TRUE(await(remote_->destroy_lease(lease))) << "what is over may be ended again";
  const auto stillborn =
      await(remote_->open_setup(facts({{"setup", "failed"}}), {.session_id = "s2"}));
  ASSERT_FALSE(stillborn);
  EXPECT_EQ(stillborn.error().code, Errc::plugin_protocol);
}

TEST_F(PluginProviderTest, WhatAPluginOnlyDeclaresOrOnlyAdvertisesIsRefused) {
  for (const std::string half : {"templates=none", "declares=nothing"}) {
    open(half);
    const PlaceRef lease = acquired();
    const auto key = core::TemplateId::make(random_, clock_.now());
    const auto captured = await(remote_->capture_template(lease, {.key = key}));
    ASSERT_FALSE(captured) << half;
    EXPECT_EQ(captured.error().code, Errc::execution_unsupported) << captured.error().message;
    const auto deleted = await(remote_->delete_template(lease, {.key = key, .ref = "t-1"}));
    ASSERT_FALSE(deleted) << half;
    EXPECT_EQ(deleted.error().code, Errc::execution_unsupported) << deleted.error().message;
    const auto opened = await(remote_->open_setup(facts(), {.session_id = "s"}));
    ASSERT_FALSE(opened) << half;
    EXPECT_EQ(opened.error().code, Errc::execution_unsupported) << opened.error().message;
    EXPECT_TRUE(await(remote_->destroy_lease(lease)));
    ASSERT_TRUE(await(remote_->close()));
    ASSERT_TRUE(await(host_->stop(id_)));
  }
}

TEST_F(PluginProviderTest, BothDriversReachIt) {
  open();
  places::remote::RemotePlace by_plugin_key{*host_, places::remote::Addressing::plugin_key};
  places::Registry registry;
  registry.add_plugins(*remote_, by_plugin_key);
  PlaceRef first = facts();
  PlaceRef other = facts();
  other.config = {{"pluginKey", "test.boxes"},
                  {"driverKey", "boxes"},
                  {"driverConfig", bj::object{{"apiKey", "id"}}}};
  other.driver = core::DriverKind::plugin;
  for (const PlaceRef* const lease : {&first, &other}) {
    const auto driver = registry.find(*lease);
    ASSERT_TRUE(driver);
    const places::AcquireRequest request{.lease = lease->clone()};
    const auto report = await((*driver)->probe(request));
    ASSERT_TRUE(report && report->ok);
    const auto made = await((*driver)->acquire(request));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->provider, lease == &other ? "plugin:test.boxes:boxes" : "boxes");
    PlaceRef held = lease->clone();
    held.provider_lease_id = made->provider_lease_id;
    held.metadata = made->metadata;
    places::Commands& commands = *(*driver)->abilities().commands;
    ASSERT_TRUE(await(commands.start(held, shell("x", "echo here"))));
    Collected output;
    ASSERT_TRUE(await(commands.follow(held, "x", 0, output)));
    EXPECT_EQ(output.out, "here\n");
    EXPECT_TRUE(await((*driver)->release(held, core::LeaseEvent::release_succeeded)));
  }
  EXPECT_TRUE(await(by_plugin_key.close()));
}

}  // namespace
}  // namespace berth::plugin_test
