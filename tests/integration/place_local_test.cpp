#include "base/files.hpp"
#include "integration/place_contract.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/output.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/protocol/text_record.hpp"
#include "keeper/protocol/version.hpp"
#include "places/local/local.hpp"
#include "support/temporary_folder.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace berth::place_test {
namespace {

using namespace places;

class LocalGround final : public Ground {
 public:
  std::unique_ptr<Place> make_place(asio::any_io_executor executor,
                                    asio::thread_pool& pool) override {
    LocalOptions options{.state_root = root(), .keeper_program = BERTH_KEEPER};
    for (const char* passed : {"ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
      const char* value = std::getenv(passed);
      if (value != nullptr) {
        options.keeper_environment.push_back(std::string{passed} + "=" + value);
      }
    }
    return std::make_unique<Local>(std::move(executor), pool, std::move(options));
  }
  bj::object config() const override { return {}; }
  core::DriverKind driver() const override { return core::DriverKind::local; }
  std::set<std::string> abilities() const override {
    return {"commands", "files", "found by key", "on this server", "usage"};
  }
  pid_t keeper_of(const PlaceRef& lease) const override {
    const auto found = keeper::look_at_keeper(root() + "/" + lease.key.str() + "/keeper");
    return found ? found->identity.pid : 0;
  }
  std::vector<std::string> leftovers() const override {
    return names_in(root()).value_or(std::vector<std::string>{});
  }
  std::string root() const { return folder_.file("leases"); }

 private:
  tests::TemporaryFolder folder_;
};

std::unique_ptr<Ground> make_local_ground() {
  return std::make_unique<LocalGround>();
}

INSTANTIATE_TEST_SUITE_P(Local, PlaceContract, testing::Values(&make_local_ground));
INSTANTIATE_TEST_SUITE_P(Local, CommandContract, testing::Values(&make_local_ground));
INSTANTIATE_TEST_SUITE_P(Local, FilesContract, testing::Values(&make_local_ground));
INSTANTIATE_TEST_SUITE_P(Local, UsageContract, testing::Values(&make_local_ground));

class LocalMachine : public CommandContract {
 protected:
  const LocalGround& local() { return static_cast<const LocalGround&>(ground()); }
  std::string folder() { return local().root() + "/" + lease().key.str(); }

  // The files of an ended keeper, on their own lease.
  PlaceRef lease_of_the_past(keeper::ProcessIdentity card,
                             const std::optional<keeper::EndRecord>& end_record) {
    const PlaceRef past = new_lease();
    const std::string keeper_folder = folder_of(past) + "/keeper/";
    EXPECT_TRUE(make_directories(keeper_folder, 0700));
    EXPECT_TRUE(keeper::Draft{keeper_folder + keeper::card_file}.publish(keeper::to_text(card)));
    if (end_record) {
      EXPECT_TRUE(
          keeper::Draft{keeper_folder + keeper::ended_file}.publish(keeper::to_text(*end_record)));
    }
    return past.clone();
  }
  std::string folder_of(const PlaceRef& facts) { return local().root() + "/" + facts.key.str(); }
};
INSTANTIATE_TEST_SUITE_P(Place, LocalMachine, testing::Values(&make_local_ground));

TEST_P(LocalMachine, ALeaseHasNoIdButOursAndAFolderThatOnlyItsUserCanEnter) {
  const Result<Acquired> acquired = await(place().acquire(request()));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_EQ(acquired->provider, "local");
  EXPECT_EQ(acquired->provider_lease_id, std::nullopt);
  const auto mode = std::filesystem::status(folder()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
  EXPECT_EQ(workspace().cwd, folder() + "/workspace");
  EXPECT_EQ(workspace().home, folder() + "/home");
  EXPECT_EQ(workspace().scratch, folder() + "/tmp");
  const auto held = await(place().held());
  ASSERT_TRUE(held);
  EXPECT_EQ(held->size(), 2U);
  for (const PlaceKey& id : *held) {
    PlaceRef other = lease().clone();
    other.key = id;
    EXPECT_TRUE(await(place().release(other, core::LeaseEvent::release_succeeded)));
  }
}

TEST_P(LocalMachine, OneKeeperHoldsAllCommandsOfALeaseAndIsReapedWhenItEnds) {
  Collected output;
  run(command({"true"}), output);
  const pid_t first = ground().keeper_of(lease());
  run(command({"true"}), output);
  EXPECT_EQ(ground().keeper_of(lease()), first);
  ASSERT_TRUE(await(place().release(lease(), core::LeaseEvent::release_succeeded)));
  EXPECT_TRUE(run_until([&] { return !keeper::process_stat(first).has_value(); }))
      << "a zombie is left";
}

TEST_P(LocalMachine, AKeeperThatDoesNotAnswerIsKilledOnRelease) {
  const Command sleep = shell("echo $$; exec sleep 1000");
  start(sleep);
  Collected output;
  const auto following = begin_follow(sleep.exec_id, output);
  const pid_t pid = pid_in(output);
  ASSERT_EQ(::kill(ground().keeper_of(lease()), SIGSTOP), 0);
  ASSERT_TRUE(await(place().release(lease(), core::LeaseEvent::release_succeeded)));
  EXPECT_FALSE(is_running(pid));
  finish(following);
}

TEST_P(LocalMachine, AKeeperThatAKilledServerHadJustStartedIsUsed) {
  auto spawned = keeper::spawn_keeper({.program = BERTH_KEEPER, .folder = folder() + "/keeper"});
  ASSERT_TRUE(spawned) << spawned.error().message;
  spawned->control = Fd{};
  Collected output;
  EXPECT_EQ(run(shell("echo used"), output).exit_code, 0);
  EXPECT_EQ(output.out, "used\n");
}

TEST_P(LocalMachine, AfterAPowerCutOutputIsReadAndTheCommandIsLost) {
  keeper::ProcessIdentity card = *keeper::identity_of(::getpid());
  card.boot_id = "another";
  card.created_us = 5'000'000;
  const PlaceRef past = lease_of_the_past(card, std::nullopt);
  const std::string file = folder_of(past) + "/keeper/" + keeper::output_file("e1");
  keeper::OutputWriter writer{file, 1000};
  writer.append(keeper::Stream::out, "before the cut\n", 1);
  std::filesystem::resize_file(file, writer.end() + 4096);
  Collected output;
  const Result<Ended> ended = await(commands().follow(past, "e1", 0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lost);
  EXPECT_EQ(output.out, "before the cut\n");
  EXPECT_TRUE(
      await(commands().start(past, Command{.exec_id = "e1", .argv = {"true"}, .cwd = "/"})));
  EXPECT_TRUE(await(place().release(past, core::LeaseEvent::release_failed)));
}

TEST_P(LocalMachine, ReleaseFailsWhileProcessesThatCouldNotBeKilledAreOnRecord) {
  const PlaceRef past = lease_of_the_past(*keeper::identity_of(::getpid()),
                                          keeper::EndRecord{.reason = "stopped", .left_behind = 2});
  const Result<> released = await(place().release(past, core::LeaseEvent::release_succeeded));
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Errc::lease_release_failed);
  EXPECT_TRUE(released.error().message.contains(past.key.str())) << released.error().message;
  EXPECT_TRUE(released.error().message.contains("2 of its processes")) << released.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder_of(past)));
  std::filesystem::remove_all(folder_of(past));
}

TEST_P(LocalMachine, ALapsedLeaseSaysSo) {
  const PlaceRef past =
      lease_of_the_past(*keeper::identity_of(::getpid()),
                        keeper::EndRecord{.outcome = keeper::Outcome::lapsed, .reason = "late"});
  const auto started =
      await(commands().start(past, Command{.exec_id = "e1", .argv = {"true"}, .cwd = "/"}));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::lease_lapsed);
  const Result<> renewed = await(commands().renew(past, 1000));
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, Errc::lease_lapsed);
  EXPECT_TRUE(await(place().release(past, core::LeaseEvent::release_failed)));
}

TEST_P(LocalMachine, AProbeSaysWhatIsWrong) {
  const auto failed_step = [&](LocalOptions options) {
    Local broken{loop_.get_executor(), pool_, std::move(options)};
    const auto report = await(broken.probe(request()));
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_TRUE(await(broken.close()));
    EXPECT_FALSE(report->ok);
    EXPECT_FALSE(report->steps.back().ok);
    EXPECT_TRUE(report->steps.back().code);
    EXPECT_TRUE(report->summary.starts_with("This machine cannot run commands: "));
    return report->steps.back().name;
  };
  EXPECT_EQ(failed_step({.state_root = local().root(), .keeper_program = "/no/such/program"}),
            "keeper");
  EXPECT_EQ(failed_step({.state_root = local().root(), .keeper_program = "/bin/false"}), "keeper");
  EXPECT_EQ(failed_step({.state_root = "/proc/no", .keeper_program = BERTH_KEEPER}), "workspace");
}

TEST_P(LocalMachine, AProbeTellsTheVersionOfTheKeeper) {
  const auto report = await(place().probe(request()));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->summary, "This machine can run commands.");
  ASSERT_TRUE(report->details);
  EXPECT_EQ(report->details->at("keeperVersion"), bj::value(keeper::version()));
}

TEST_P(LocalMachine, AMissingKeeperProgramIsSaidSo) {
  Local broken{loop_.get_executor(),
               pool_,
               {.state_root = local().root(), .keeper_program = "/no/such/program"}};
  const auto started = await(broken.abilities().commands->start(lease(), command({"true"})));
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().message.contains("/no/such/program")) << started.error().message;
  EXPECT_TRUE(await(broken.close()));
}

}  // namespace
}  // namespace berth::place_test
