#include "keeper/sandbox/cgroup/cgroup_layout.hpp"

#include <gtest/gtest.h>

#include <map>

namespace berth::keeper::sandbox {
namespace {

using Version = Hierarchy::Version;
using Views = std::map<std::string, FolderView>;

constexpr Host with_systemd{.init = InitSystem::systemd, .user = 1001};
constexpr Host without_systemd{.init = InitSystem::other, .user = 1001};

CgroupLayout layout_for(std::string_view self, std::string_view mounts, const Views& views,
                        const Host& host = with_systemd) {
  const auto look = [&](Version, const std::string& folder) {
    const auto found = views.find(folder);
    return found == views.end() ? FolderView{} : found->second;
  };
  return choose_layout(find_hierarchies(self, mounts), look, host);
}

constexpr auto v2_mount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    "31 23 0:27 / /proc rw - proc proc rw\n";
constexpr auto v1_mounts =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
constexpr auto v1_self =
    "12:name=systemd:/user.slice\n5:pids:/jobs/a\n4:memory:/jobs/a\n3:freezer:/\n"
    "2:cpu,cpuacct:/jobs\n";

FolderView writable(std::string controllers = "", std::string enabled = "") {
  return {.writable = true,
          .controllers = std::move(controllers),
          .subtree_control = std::move(enabled)};
}

FolderView counting() {
  FolderView view = writable();
  view.counts_io = true;
  return view;
}

FolderView delegated(std::string controllers) {
  FolderView view = writable(std::move(controllers));
  view.delegated = true;
  return view;
}

TEST(CgroupLayout, AServiceThatWasGivenItsGroupDividesIt) {
  const auto layout = layout_for(
      "0::/system.slice/berth.service\n", v2_mount,
      {{"/sys/fs/cgroup/system.slice/berth.service", delegated("cpu io memory pids\n")}});
  EXPECT_EQ(layout.unified, "/sys/fs/cgroup/system.slice/berth.service");
  EXPECT_EQ(layout.to_enable,
            (std::vector{Controller::memory, Controller::cpu, Controller::pids, Controller::io}));
  EXPECT_TRUE(layout.in_unified.empty());
  EXPECT_EQ(layout.remedy, "");
}

TEST(CgroupLayout, TheLeafThatWeMovedIntoIsNotNestedFurther) {
  const auto layout = layout_for("0::/system.slice/berth.service/berth.self\n", v2_mount,
                                 {{"/sys/fs/cgroup/system.slice/berth.service",
                                   writable("cpu memory pids\n", "cpu memory pids\n")}});
  EXPECT_EQ(layout.unified, "/sys/fs/cgroup/system.slice/berth.service");
  EXPECT_EQ(layout.in_unified,
            (std::vector{Controller::memory, Controller::cpu, Controller::pids}));
  EXPECT_TRUE(layout.to_enable.empty());
}

TEST(CgroupLayout, AGroupThatNobodyGaveAwayIsNotEmptied) {
  const auto layout =
      layout_for("0::/user.slice/session-1.scope\n", v2_mount,
                 {{"/sys/fs/cgroup/user.slice/session-1.scope", writable("memory pids\n")}});
  EXPECT_EQ(layout.unified, "/sys/fs/cgroup/user.slice/session-1.scope");
  EXPECT_FALSE(layout.has(Controller::memory));
  EXPECT_NE(layout.remedy.find("Delegate=yes"), std::string::npos);
}

TEST(CgroupLayout, WithoutDelegationNothingIsUsable) {
  const auto layout = layout_for("0::/user.slice/session-1.scope\n", v2_mount, {});
  EXPECT_EQ(layout.unified, "");
  EXPECT_FALSE(layout.has(Controller::pids));
  EXPECT_NE(layout.remedy.find("Delegate=yes"), std::string::npos);
}

TEST(CgroupLayout, DelegationOfSomeControllersLeavesARemedyForTheRest) {
  const auto layout =
      layout_for("0::/user.slice/user-1000.slice/user@1000.service/run.scope\n", v2_mount,
                 {{"/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/run.scope",
                   delegated("memory pids\n")}});
  EXPECT_TRUE(layout.has(Controller::memory));
  EXPECT_FALSE(layout.has(Controller::cpu));
  EXPECT_NE(layout.remedy.find("Delegate=cpu memory pids"), std::string::npos);
}

TEST(CgroupLayout, HybridTakesLimitsFromV1AndLifeFromV2) {
  const std::string self =
      "5:blkio:/\n4:memory:/jobs/7\n3:pids:/\n2:cpu:/\n1:freezer:/\n0::/jobs\n";
  const std::string mounts =
      "32 31 0:29 / /c/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 / /c/memory rw - cgroup cgroup "
      "rw,memory\n37 31 0:34 / /c/freezer rw - cgroup cgroup rw,freezer\n39 31 0:36 / /c/pids rw - "
      "cgroup cgroup rw,pids\n40 31 0:37 / /c/blkio rw - cgroup cgroup rw,blkio\n41 31 0:38 / "
      "/c/unified rw - "
      "cgroup2 cgroup2 rw\n";
  const auto layout = layout_for(self, mounts,
                                 {{"/c/memory/jobs/7", writable()},
                                  {"/c/pids", writable()},
                                  {"/c/cpu", writable()},
                                  {"/c/freezer", writable()},
                                  {"/c/blkio", counting()},
                                  {"/c/unified/jobs", writable("hugetlb\n")}});
  EXPECT_EQ(layout.unified, "/c/unified/jobs");
  EXPECT_TRUE(layout.in_unified.empty());
  EXPECT_EQ(layout.legacy_of(Controller::memory), "/c/memory/jobs/7");
  EXPECT_EQ(layout.legacy_of(Controller::pids), "/c/pids");
  EXPECT_EQ(layout.legacy_of(Controller::io), "/c/blkio");
  EXPECT_EQ(layout.legacy_of(Controller::freezer), "");  // v2 freezes
  EXPECT_EQ(layout.remedy, "");
}

TEST(CgroupLayout, PureV1HasAFolderForEachController) {
  const std::string c = "/sys/fs/cgroup/";
  const auto layout = layout_for(v1_self, v1_mounts,
                                 {{c + "cpu,cpuacct/jobs", writable()},
                                  {c + "memory/jobs/a", writable()},
                                  {c + "freezer", writable()},
                                  {c + "pids/jobs/a", writable()}});
  EXPECT_EQ(layout.unified, "");
  EXPECT_EQ(layout.legacy_of(Controller::cpu), c + "cpu,cpuacct/jobs");
  EXPECT_EQ(layout.legacy_of(Controller::cpuacct), c + "cpu,cpuacct/jobs");
  EXPECT_EQ(layout.legacy_of(Controller::freezer), c + "freezer");
  EXPECT_EQ(layout.legacy_of(Controller::memory), c + "memory/jobs/a");
}

TEST(CgroupLayout, AGroupThatCountsNoBytesIsNotMade) {
  constexpr auto mounts = "38 31 0:35 / /c/blkio rw - cgroup cgroup rw,blkio\n";
  const auto folder_where = [&](const FolderView& top) {
    return layout_for("7:blkio:/jobs/7\n", mounts,
                      {{"/c/blkio/jobs/7", writable()}, {"/c/blkio", top}})
        .legacy_of(Controller::io);
  };
  EXPECT_EQ(folder_where(counting()), "/c/blkio/jobs/7");
  EXPECT_EQ(folder_where(writable()), "");
}

TEST(CgroupLayout, AReadOnlyControllerOfV1IsNotUsed) {
  const auto layout = layout_for(v1_self, v1_mounts, {{"/sys/fs/cgroup/pids/jobs/a", writable()}});
  EXPECT_TRUE(layout.has(Controller::pids));
  EXPECT_FALSE(layout.has(Controller::memory));
  EXPECT_NE(layout.remedy, "");
}

TEST(CgroupLayout, GroupsOfV1AreGivenByHandAlsoWithSystemd) {
  constexpr auto hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  for (const Host& host : {with_systemd, without_systemd}) {
    const auto layout =
        layout_for(std::string{v1_self} + "0::/\n", std::string{v1_mounts} + hybrid, {}, host);
    EXPECT_TRUE(layout.remedy.ends_with(
        "for g in /sys/fs/cgroup/pids/jobs/a /sys/fs/cgroup/memory/jobs/a /sys/fs/cgroup/freezer "
        "/sys/fs/cgroup/cpu,cpuacct/jobs; do mkdir -p $g/berth; chown -R 1001 $g/berth; "
        "echo $$ >$g/berth/cgroup.procs; done"))
        << layout.remedy;
  }
}

TEST(CgroupLayout, WithoutSystemdAGroupOfV2IsGivenByHand) {
  const auto layout = layout_for("0::/\n", v2_mount, {}, without_systemd);
  EXPECT_TRUE(layout.remedy.ends_with(
      "mkdir -p /sys/fs/cgroup/berth/berth.self; chown -R 1001 /sys/fs/cgroup/berth; "
      "echo $$ >/sys/fs/cgroup/berth/berth.self/cgroup.procs; "
      "for g in /sys/fs/cgroup /sys/fs/cgroup/berth; "
      "do echo '+cpu +memory +pids' >$g/cgroup.subtree_control; done"))
      << layout.remedy;
  // We can use the groups that these commands make.
  const std::string all = "cpu memory pids\n";
  const auto mended = layout_for("0::/berth/berth.self\n", v2_mount,
                                 {{"/sys/fs/cgroup/berth", writable(all, all)}}, without_systemd);
  EXPECT_EQ(mended.remedy, "");
}

TEST(CgroupLayout, WithoutSystemdNoRemedyNamesIt) {
  const Views some{{"/sys/fs/cgroup", writable("memory\n")}};
  for (const Views& views : {Views{}, some}) {
    for (const std::uint32_t user : {0U, 1001U}) {
      const auto layout =
          layout_for("0::/\n", v2_mount, views, {.init = InitSystem::other, .user = user});
      EXPECT_NE(layout.remedy, "");
      EXPECT_EQ(layout.remedy.find("Delegate"), std::string::npos) << layout.remedy;
    }
  }
}

TEST(CgroupLayout, AMachineWithoutGroupsSaysHowToGetThem) {
  const auto layout = layout_for("", "31 23 0:27 / /proc rw - proc proc rw\n", {});
  EXPECT_EQ(layout.unified, "");
  EXPECT_FALSE(layout.has(Controller::memory));
  EXPECT_NE(layout.remedy.find("mount -t cgroup2"), std::string::npos);
}

TEST(CgroupLayout, AContainerSeesItsOwnGroupAtTheMountPoint) {
  const auto found = find_hierarchies(
      "0::/docker/abc/inner\n", "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].own_folder, "/sys/fs/cgroup/inner");
}

TEST(CgroupLayout, AGroupOutsideOfWhatIsMountedIsNotFound) {
  constexpr auto part = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
  EXPECT_TRUE(find_hierarchies("0::/docker/abcd\n", part).empty());
  EXPECT_TRUE(find_hierarchies("0::/../other\n", v2_mount).empty());
}

TEST(CgroupLayout, OddLinesAndNamesDoNoHarm) {
  const auto found =
      find_hierarchies("nonsense\n3:memory\n0::/a:b c\n",
                       "x\n1 2 3 - cgroup2\n30 23 0:26 / /odd\\040place rw - cgroup2 cgroup2 rw\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].version, Version::v2);
  EXPECT_EQ(found[0].own_folder, "/odd place/a:b c");
}

TEST(CgroupLayout, ANoteTellsAnybodyWhereTheGroupsAre) {
  const CgroupLayout layout = layout_for(v1_self, v1_mounts,
                                         {{"/sys/fs/cgroup/cpu,cpuacct/jobs", writable()},
                                          {"/sys/fs/cgroup/memory/jobs/a", writable()},
                                          {"/sys/fs/cgroup/pids/jobs/a", writable()}});
  const std::string note = note_of(layout);
  EXPECT_EQ(note,
            "/sys/fs/cgroup/memory/jobs/a\n/sys/fs/cgroup/cpu,cpuacct/jobs\n"
            "/sys/fs/cgroup/pids/jobs/a");
  const CgroupLayout told = noted_layout(note, v1_mounts);
  EXPECT_EQ(told.legacy, layout.legacy);
  EXPECT_EQ(told.unified, "");
}

TEST(CgroupLayout, ANoteOfV2IsOneFolder) {
  const CgroupLayout layout{.unified = "/sys/fs/cgroup/system.slice/berth.service"};
  EXPECT_EQ(note_of(layout), layout.unified);
  EXPECT_EQ(noted_layout(note_of(layout), v2_mount), layout);
  EXPECT_EQ(note_of({}), "");
}

TEST(CgroupLayout, ANoteOfWhatIsNoPlacePlainlyInAHierarchyCountsForNothing) {
  for (const char* note :
       {"", "/", "/home/user", "/sys/fs/cgroup", "/sys/fs/cgroup/memory2", "sys/fs/cgroup/memory/a",
        "/sys/fs/cgroup/memory/../../../home", "/sys/fs/cgroup/memory/./a",
        "/sys/fs/cgroup/memory//a", "/sys/fs/cgroup/memory/"}) {
    EXPECT_EQ(noted_layout(note, v1_mounts), CgroupLayout{}) << note;
  }
}

}  // namespace
}  // namespace berth::keeper::sandbox
