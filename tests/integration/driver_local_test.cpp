#include "base/files.hpp"
#include "drivers/local.hpp"
#include "integration/driver_contract.hpp"
#include "keeper/process_tree.hpp"
#include "keeper/state_folder.hpp"
#include "keeper/version.hpp"
#include "support/temporary_folder.hpp"

#include <signal.h>

#include <cstdlib>
#include <filesystem>

namespace berth::driver_test {
namespace {

using namespace drivers;

class LocalPlace final : public DriverPlace {
 public:
  std::unique_ptr<Driver> make_driver(asio::any_io_executor executor,
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
  pid_t keeper_of(const LeaseFacts& lease) const override {
    const auto found = keeper::look_at_keeper(root() + "/" + lease.lease_id.str() + "/keeper");
    return found ? found->card.pid : 0;
  }
  std::vector<std::string> leftovers() const override {
    return names_in(root()).value_or(std::vector<std::string>{});
  }
  std::string root() const { return folder_.file("leases"); }

 private:
  tests::TemporaryFolder folder_;
};

std::unique_ptr<DriverPlace> make_local_place() {
  return std::make_unique<LocalPlace>();
}

INSTANTIATE_TEST_SUITE_P(Local, DriverContract, testing::Values(&make_local_place));
INSTANTIATE_TEST_SUITE_P(Local, CommandContract, testing::Values(&make_local_place));

class LocalDriver : public CommandContract {
 protected:
  const LocalPlace& local() { return static_cast<const LocalPlace&>(place()); }
  std::string folder() { return local().root() + "/" + lease().lease_id.str(); }
};
INSTANTIATE_TEST_SUITE_P(Place, LocalDriver, testing::Values(&make_local_place));

TEST_P(LocalDriver, ALeaseHasNoIdButOursAndAFolderThatOnlyItsUserCanEnter) {
  const Result<Acquired> acquired = await(driver().acquire(request()));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_EQ(acquired->provider, "local");
  EXPECT_EQ(acquired->provider_lease_id, std::nullopt);
  const auto mode = std::filesystem::status(folder()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
  EXPECT_EQ(workspace().cwd, folder() + "/workspace");
  EXPECT_EQ(workspace().home, folder() + "/home");
  EXPECT_EQ(workspace().scratch, folder() + "/tmp");
  const auto held = await(driver().held());
  ASSERT_TRUE(held);
  EXPECT_EQ(held->size(), 2U);
  for (const core::LeaseId& id : *held) {
    LeaseFacts other = lease().clone();
    other.lease_id = id;
    EXPECT_TRUE(await(driver().release(other, core::LeaseEvent::release_succeeded)));
  }
}

TEST_P(LocalDriver, OneKeeperHoldsAllCommandsOfALeaseAndIsReapedWhenItEnds) {
  Collected output;
  run(command({"true"}), output);
  const pid_t first = place().keeper_of(lease());
  run(command({"true"}), output);
  EXPECT_EQ(place().keeper_of(lease()), first);
  ASSERT_TRUE(await(driver().release(lease(), core::LeaseEvent::release_succeeded)));
  EXPECT_TRUE(run_until([&] { return !keeper::process_stat(first).has_value(); }))
      << "a zombie is left";
}

TEST_P(LocalDriver, AKeeperThatDoesNotAnswerIsKilledOnRelease) {
  const Command sleep = shell("echo $$; exec sleep 1000");
  start(sleep);
  Collected output;
  const auto following = begin_follow(sleep.exec_id, output);
  const pid_t pid = pid_in(output);
  ASSERT_EQ(::kill(place().keeper_of(lease()), SIGSTOP), 0);
  ASSERT_TRUE(await(driver().release(lease(), core::LeaseEvent::release_succeeded)));
  EXPECT_FALSE(is_running(pid));
  finish(following);
}

TEST_P(LocalDriver, AProbeSaysWhatIsWrong) {
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

TEST_P(LocalDriver, AProbeTellsTheVersionOfTheKeeper) {
  const auto report = await(driver().probe(request()));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->summary, "This machine can run commands.");
  ASSERT_TRUE(report->details);
  EXPECT_EQ(report->details->at("keeperVersion"), bj::value(keeper::version()));
}

TEST_P(LocalDriver, AMissingKeeperProgramIsSaidSo) {
  Local broken{loop_.get_executor(),
               pool_,
               {.state_root = local().root(), .keeper_program = "/no/such/program"}};
  const auto started = await(broken.start(lease(), command({"true"})));
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().message.contains("/no/such/program")) << started.error().message;
  EXPECT_TRUE(await(broken.close()));
}

}  // namespace
}  // namespace berth::driver_test
