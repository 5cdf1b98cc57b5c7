#include "base/clock.hpp"
#include "integration/place_contract.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

// What applies to every place that has an ability beyond commands.
namespace berth::place_test {

using namespace places;

TEST_P(FilesContract, ItsFilesAreThoseThatItsCommandsMake) {
  Collected output;
  run(shell("echo seen > made"), output);
  const Result<FileRoot> files = await(place().abilities().files->files(lease()));
  ASSERT_TRUE(files) << files.error().message;
  const std::string folder = files->workdir ? files->workdir->substr(1) + "/" : "";
  struct stat made{};
  ASSERT_EQ(::fstatat(files->folder.get(), (folder + "made").c_str(), &made, AT_SYMLINK_NOFOLLOW),
            0);
  EXPECT_EQ(made.st_size, 5);
  EXPECT_EQ(made.st_uid, files->user ? files->user->uid : ::geteuid());
  EXPECT_EQ(made.st_gid, files->user ? files->user->gid : ::getegid());
}

TEST_P(UsageContract, CountsWhatRuns) {
  const Command sleep = shell("sleep 60");
  start(sleep);
  const Result<Usage> used = await(place().abilities().usage->usage(lease()));
  ASSERT_TRUE(used) << used.error().message;
  EXPECT_GE(used->processes, 1);
  EXPECT_GT(used->memory_bytes, 0);
  EXPECT_TRUE(await(commands().cancel(lease(), sleep.exec_id, 0)));
}

TEST_P(PortsContract, APortWithoutAListenerIsUnreachableAndNotListed) {
  const Result<Fd> nobody = await(ports().dial(lease(), 8090));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Errc::port_unreachable);
  const auto listening = await(ports().listening(lease()));
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_EQ(std::ranges::count(*listening, 8090), 0);
}

TEST_P(EgressContract, TheLogOfAPlaceThatReachedNothingIsEmpty) {
  const auto page = await(place().abilities().egress->egress_log(lease(), 0));
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_TRUE(page->entries.empty());
}

TEST_P(SnapshotsContract, WhatACommandHasMadeIsAChange) {
  Collected output;
  run(shell("echo seen > made"), output);
  const auto changes = await(place().abilities().snapshots->changes(lease()));
  ASSERT_TRUE(changes) << changes.error().message;
  const auto is_it = [](const Change& one) { return one.path.ends_with("/made"); };
  EXPECT_TRUE(std::ranges::any_of(changes->changes, is_it));
}

TEST_P(SnapshotsContract, ATemplateIsHeldUntilItIsDeleted) {
  SystemRandom random;
  Snapshots& snapshots = *place().abilities().snapshots;
  const CaptureTemplate request{.key = core::TemplateId::make(random, SystemClock{}.now())};
  const auto captured = await(snapshots.capture_template(lease(), request));
  ASSERT_TRUE(captured) << captured.error().message;
  EXPECT_EQ(*await(snapshots.held_templates()), std::vector{request.key});
  const DeleteTemplate deletion{.key = request.key, .ref = captured->ref, .kind = captured->kind};
  const auto deleted = await(snapshots.delete_template(lease(), deletion));
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_TRUE(*deleted);
  EXPECT_EQ(*await(snapshots.held_templates()), std::vector<core::TemplateId>{});
  EXPECT_EQ(await(snapshots.delete_template(lease(), deletion)), false);
}

TEST_P(FreezerContract, AFrozenPlaceContinuesWhenItIsThawed) {
  Freezer& freezer = *place().abilities().freezer;
  const Result<> frozen = await(freezer.freeze(lease()));
  ASSERT_TRUE(frozen) << frozen.error().message;
  const Result<> thawed = await(freezer.thaw(lease()));
  ASSERT_TRUE(thawed) << thawed.error().message;
  Collected output;
  run(shell("echo here"), output);
  EXPECT_EQ(output.out, "here\n");
}

}  // namespace berth::place_test
