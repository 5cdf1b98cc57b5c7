#include "integration/sandbox_fixture.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

// What is inside, and what is not.
namespace berth::keeper_test {
namespace {

namespace fs = std::filesystem;
using keeper::sandbox::Access;
using keeper::sandbox::Base;
using keeper::sandbox::Plan;

// An image does not contain the host's programs, so it is read from outside.
std::string text_in(const Fd& root, const char* path) {
  const Fd file{::openat(root.get(), path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  EXPECT_TRUE(file) << path;
  return file ? read_fd(file.get(), 1 << 16, path).value_or("") : "";
}

class SandboxWalls : public SandboxTest {};
INSTANTIATE_TEST_SUITE_P(By, SandboxWalls, testing::Values(Maker::root, Maker::user),
                         [](const auto& by) {
                           return by.param == Maker::root ? "Root" : "OrdinaryUser";
                         });

class SandboxWallsByRoot : public SandboxWalls {};
INSTANTIATE_TEST_SUITE_P(Made, SandboxWallsByRoot, testing::Values(Maker::root));

#define CONFINE(...)    \
  confine(__VA_ARGS__); \
  if (IsSkipped() || HasFatalFailure()) return

TEST_P(SandboxWalls, TheUserIsAnOrdinaryOneWithoutCapabilities) {
  CONFINE();
  EXPECT_EQ(said("id -u; id -g; id -G"), "1000\n1000\n1000\n");
  EXPECT_EQ(said("grep -c 'Cap.*:.0000000000000000' /proc/self/status"), "5\n");
  EXPECT_EQ(said("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | cut -f2 | tr '\\n' ' '"),
            "1 2 ");
}

TEST_P(SandboxWalls, RootInsideOwnsItsFilesButNoneOfTheHosts) {
  CONFINE({.user = {.uid = 0, .gid = 0}});
  EXPECT_EQ(said("id -u; touch /etc/mine && stat -c %u /etc/mine"), "0\n0\n");
  EXPECT_NE(ask("touch /usr/mine").code, 0);
  EXPECT_NE(ask("mount -t tmpfs none /tmp").code, 0);
  EXPECT_NE(ask("echo x > /proc/sys/kernel/hostname").code, 0);
}

TEST_P(SandboxWalls, TheUserIsWhoThePlanSaysAndOwnsWhatIsMadeForIt) {
  CONFINE({.directories = {"/made"}, .user = {.uid = 33, .gid = 7}});
  EXPECT_EQ(said("id -u; id -g; id -G"), "33\n7\n7\n");
  EXPECT_EQ(said("touch /made/file && stat -c %u:%g /made /made/file"), "33:7\n33:7\n");
  EXPECT_EQ(said("grep -c 'Cap.*:.0000000000000000' /proc/self/status"), "5\n");
}

TEST_P(SandboxWalls, TheUserIsInItsOtherGroupsOrTheIsolationSaysThatItIsNot) {
  CONFINE({.user = {.uid = 33, .gid = 7, .groups = {4, 9}}});
  const auto names_groups = [](const keeper::Missing& missing) {
    return missing.feature == "other-groups" && !missing.remedy.empty();
  };
  EXPECT_EQ(std::ranges::any_of(confined().missing, names_groups), !is_by_root());
  EXPECT_EQ(said("id -G"), is_by_root() ? "7 4 9\n" : "7\n");
}

TEST_P(SandboxWalls, AGroupOfItsOwnWritesToABoundFolder) {
  const std::string folder = folder_for_keeper("shared");
  CONFINE({.binds = {{.source = folder, .target = "/shared", .access = Access::writable}},
           .user = {.uid = 33, .gid = 7}});
  EXPECT_EQ(said("touch /shared/file && stat -c %u:%g /shared/file"), "33:7\n");
}

TEST_P(SandboxWalls, NothingOfTheHostIsInSight) {
  std::ofstream{root() + "/canary"} << "secret";
  CONFINE();
  EXPECT_NE(ask("cat " + root() + "/canary").code, 0);
  EXPECT_NE(ask("cat /proc/1/root" + root() + "/canary").code, 0);
  EXPECT_EQ(said("ls /sys /home; hostname"), "/home:\nsandbox\n\n/sys:\nsandbox\n");
  EXPECT_EQ(said("ls /proc | grep -c '^[0-9]' | grep -x '[3-7]' > /dev/null && echo few"), "few\n");
  EXPECT_EQ(said("cat /proc/keys /proc/cmdline /proc/kallsyms /proc/timer_list"), "");
  EXPECT_FALSE(said("cat /proc/1/cmdline").contains("/"));
}

TEST_P(SandboxWalls, PidOneCannotBeLookedInto) {
  CONFINE();
  EXPECT_NE(ask("cat /proc/1/environ").code, 0);
  EXPECT_NE(ask("cat /proc/1/maps").code, 0);
  EXPECT_NE(ask("ls /proc/1/fd").code, 0);
  EXPECT_EQ(said("kill -9 1; kill -STOP 1; echo still here"), "still here\n");
}

TEST_P(SandboxWalls, OnlyTheLoopbackIsThereAndItIsUp) {
  CONFINE();
  EXPECT_EQ(said("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '"), "lo\n");
  EXPECT_EQ(said("cat /proc/net/route | tail -n +2"), "");
}

TEST_P(SandboxWalls, NamespacesAndMountsAreRefused) {
  CONFINE();
  for (const char* attempt :
       {"unshare -U true", "unshare -m true", "unshare -n true", "mount -t tmpfs none /tmp",
        "umount /proc/keys", "umount /usr", "mount -o remount,rw /usr", "chroot / true"}) {
    EXPECT_NE(ask(attempt).code, 0) << attempt;
  }
}

TEST_P(SandboxWalls, DescriptorsOfTheKeeperAreNotInherited) {
  CONFINE();
  EXPECT_EQ(said("exec ls /proc/self/fd"), "0\n1\n2\n3\n");  // the last is what ls reads
  EXPECT_EQ(said("ulimit -c"), "0\n");
}

TEST_P(SandboxWalls, ABoundFolderIsSharedAndItsFilesKeepTheirOwner) {
  const std::string work = folder_for_keeper("work");
  const std::string fixed = folder_for_keeper("fixed");
  CONFINE({.binds = {{.source = work, .target = "/deep/work", .access = Access::writable},
                     {.source = fixed, .target = "/fixed"}}});
  EXPECT_EQ(said("stat -c %u /deep/work; echo hello > /deep/work/file"), "1000\n");
  EXPECT_EQ(read_file(work + "/file", 100).value_or(""), "hello\n");
  struct stat folder{};
  struct stat file{};
  ASSERT_EQ(::stat(work.c_str(), &folder), 0);
  ASSERT_EQ(::stat((work + "/file").c_str(), &file), 0);
  EXPECT_EQ(file.st_uid, folder.st_uid);
  EXPECT_TRUE(ask("touch /fixed/file").text.contains("Read-only"));
}

TEST_P(SandboxWallsByRoot, TheGroupOfABoundFolderIsTheUsersOwnAndNoOtherIs) {
  constexpr uid_t owner = 4001;
  constexpr gid_t group = 4002;
  const std::string folder = folder_for_keeper("shared");
  ASSERT_EQ(::chown(folder.c_str(), owner, group), 0);
  // A group whose number is the owner's.
  const std::string foreign = folder + "/foreign";
  std::ofstream{foreign} << "secret";
  ASSERT_EQ(::chown(foreign.c_str(), 4003, owner), 0);
  fs::permissions(foreign, fs::perms{0660});
  CONFINE({.binds = {{.source = folder, .target = "/shared", .access = Access::writable}}});
  EXPECT_EQ(said("stat -c %u:%g /shared; touch /shared/file"), "1000:1000\n");
  struct stat made{};
  ASSERT_EQ(::stat((folder + "/file").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, owner);
  EXPECT_EQ(made.st_gid, group);
  EXPECT_NE(ask("cat /shared/foreign").code, 0);
}

TEST_P(SandboxWalls, ABoundFileIsReadable) {
  const std::string source = folder_for_keeper("files") + "/one";
  std::ofstream{source} << "text";
  CONFINE({.binds = {{.source = source, .target = "/etc/given/one"}}});
  EXPECT_EQ(said("cat /etc/given/one"), "text");
}

TEST_P(SandboxWalls, WhatIsWrittenOverALayerIsInTheUpperFolder) {
  const std::string layer = folder_for_keeper("layer");
  fs::create_directories(layer + "/opt/tool");
  std::ofstream{layer + "/opt/tool/setting"} << "old\n";
  fs::permissions(layer + "/opt/tool", fs::perms::all);
  fs::permissions(layer + "/opt/tool/setting", fs::perms{0666});
  // An ordinary user can take over only his own files.
  for (const char* part : {"/opt", "/opt/tool", "/opt/tool/setting"}) give_to_keeper(layer + part);
  const std::string upper = folder_for_keeper("upper");
  CONFINE({.layers = {layer}, .upper_folder = upper});
  EXPECT_EQ(said("cat /opt/tool/setting; echo new > /opt/tool/setting; cat /opt/tool/setting"),
            "old\nnew\n");
  EXPECT_EQ(read_file(layer + "/opt/tool/setting", 100).value_or(""), "old\n");
  EXPECT_EQ(read_file(upper + "/upper/opt/tool/setting", 100).value_or(""), "new\n");
}

TEST_P(SandboxWalls, ARootOfLayersAloneNeedsNothingOfTheHost) {
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/bin");
  fs::copy_file(BERTH_KEEPER, layer + "/bin/only");
  CONFINE({.base = Base::layers, .layers = {layer}});
  keeper::Exec exec = command({"/bin/only", "version"});
  exec.cwd = "/";
  EXPECT_EQ(run(exec).code, 0);
  EXPECT_FALSE(output_of(exec.exec_id).out.empty());
}

TEST_P(SandboxWalls, LinksInALayerLeadNowhereOutside) {
  const std::string layer = folder_for_keeper("layer");
  const std::string outside = folder_for_keeper("outside");
  fs::create_directory_symlink(outside, layer + "/way");
  fs::create_directory(layer + "/etc");
  CONFINE({.layers = {layer}, .directories = {"/way/out"}});
  // It leads to a folder with that name inside, which was missing.
  EXPECT_EQ(said("stat -c %u /way/out " + outside + "/out"), "1000\n1000\n");
  EXPECT_FALSE(fs::exists(outside + "/out"));
}

TEST_P(SandboxWalls, LinksToWhatTheSetupHasOpenLeadNowhereOutside) {
  const std::string layer = folder_for_keeper("layer");
  const std::string upper = folder_for_keeper("upper");
  const std::string outside = folder_for_keeper("outside");
  // One of these is the upper folder. From there the link leads up, and down to the other.
  bool is_made = false;
  for (int number = 3; number < 40 && !is_made; ++number) {
    const std::string way = "/way" + std::to_string(number);
    fs::create_symlink("/proc/self/fd/" + std::to_string(number) + "/../../outside", layer + way);
    const auto made =
        client().confine({.layers = {layer}, .upper_folder = upper, .directories = {way + "/out"}});
    is_made = made.has_value();
    EXPECT_TRUE(fs::is_empty(outside)) << number;
  }
}

TEST_P(SandboxWalls, AnImageMayHaveTmpAndHomeElsewhere) {
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/var");
  give_to_keeper(layer + "/var");
  fs::create_directory_symlink("var/tmp", layer + "/tmp");
  fs::create_directory_symlink("/var/home", layer + "/home");
  const std::string shared = folder_for_keeper("shared");
  CONFINE({.layers = {layer},
           .binds = {{.source = shared, .target = "/home/shared", .access = Access::writable}},
           .directories = {"/home/sandbox"}});
  EXPECT_EQ(said("cd -P /tmp && pwd; cd -P /home/sandbox && pwd; stat -c %u ."),
            "/var/tmp\n/var/home/sandbox\n1000\n");
  said("touch /tmp/file /home/sandbox/file /var/home/shared/file");
  EXPECT_TRUE(fs::exists(shared + "/file"));
}

TEST_P(SandboxWalls, AnImageWhoseProcOrDevIsNoFolderIsRefusedByName) {
  const auto refusal_of = [&](const std::string& layer) {
    const auto made = client().confine({.base = Base::layers, .layers = {layer}});
    EXPECT_FALSE(made) << layer;
    return made ? Error{} : made.error();
  };
  for (const std::string name : {"proc", "dev"}) {
    const std::string linked = folder_for_keeper("linked-" + name);
    fs::create_directory(linked + "/bin");
    fs::create_directory_symlink("bin", linked + "/" + name);
    const std::string filed = folder_for_keeper("filed-" + name);
    std::ofstream{filed + "/" + name} << "a file";
    for (const std::string& layer : {linked, filed}) {
      const Error refusal = refusal_of(layer);
      if (refusal.code == Errc::sandbox_unavailable) GTEST_SKIP() << refusal.message;
      EXPECT_EQ(refusal.code, Errc::sandbox_setup_failed);
      EXPECT_TRUE(refusal.message.contains("/" + name + " of the image: Not a directory"))
          << refusal.message;
      EXPECT_TRUE(refusal.remedy.contains("make it a folder in the image")) << refusal.remedy;
    }
  }
}

TEST_P(SandboxWalls, AnImageWhoseTmpLeadsToTheKernelsFoldersIsRefusedByName) {
  for (const std::string target : {"/", "proc", "dev/shm", "tmp"}) {
    const std::string layer = folder_for_keeper("layer" + std::to_string(target.size()));
    fs::create_directory_symlink(target, layer + "/tmp");
    const auto made = client().confine({.layers = {layer}});
    ASSERT_FALSE(made) << target;
    if (made.error().code == Errc::sandbox_unavailable) GTEST_SKIP() << made.error().message;
    EXPECT_TRUE(made.error().message.contains("/tmp of the image")) << made.error().message;
    EXPECT_FALSE(made.error().remedy.empty());
  }
}

TEST_P(SandboxWalls, AnImageWithoutAFileOfHostsKnowsLocalhost) {
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/bin");
  fs::copy_file(BERTH_KEEPER, layer + "/bin/only");
  CONFINE({.base = Base::layers, .layers = {layer}});
  const auto root = client().root();
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_TRUE(text_in(*root, "etc/hosts").contains("127.0.0.1 localhost"));
  // It is not part of what was written.
  const auto upper = client().root(keeper::Part::upper);
  ASSERT_TRUE(upper) << upper.error().message;
  struct stat seen{};
  EXPECT_NE(::fstatat(upper->get(), "etc", &seen, AT_SYMLINK_NOFOLLOW), 0);
}

TEST_P(SandboxWalls, AnImageWhoseFileOfHostsIsEmptyKnowsLocalhost) {
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/etc");
  std::ofstream{layer + "/etc/issue"} << "mine\n";
  std::ofstream{layer + "/etc/hosts"};
  fs::permissions(layer + "/etc", fs::perms{0751});
  CONFINE({.base = Base::layers, .layers = {layer}});
  const auto root = client().root();
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_TRUE(text_in(*root, "etc/hosts").contains("127.0.0.1 localhost"));
  EXPECT_EQ(text_in(*root, "etc/issue"), "mine\n");
  struct stat seen{};
  ASSERT_EQ(::fstatat(root->get(), "etc", &seen, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_EQ(seen.st_mode & 07777U, 0751U);
  const auto upper = client().root(keeper::Part::upper);
  ASSERT_TRUE(upper) << upper.error().message;
  EXPECT_NE(::fstatat(upper->get(), "etc", &seen, AT_SYMLINK_NOFOLLOW), 0);
}

TEST_P(SandboxWalls, TheFileOfHostsOfAnImageStaysAsItIs) {
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/etc");
  std::ofstream{layer + "/etc/hosts"} << "127.0.0.1 mine\n";
  CONFINE({.base = Base::layers, .layers = {layer}});
  const auto root = client().root();
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(text_in(*root, "etc/hosts"), "127.0.0.1 mine\n");
}

TEST_P(SandboxWalls, SizesInMemoryAreLimits) {
  CONFINE({.upper_bytes = 1 << 20, .tmp_bytes = 1 << 20, .shm_bytes = 1 << 20});
  for (const std::string folder : {"/tmp", "/dev/shm", "/home/sandbox"}) {
    EXPECT_NE(ask("head -c 3000000 /dev/zero > " + folder + "/file").code, 0);
    EXPECT_EQ(ask("rm " + folder + "/file").code, 0);
  }
}

TEST_P(SandboxWalls, NumbersOfFilesInMemoryAreLimits) {
  CONFINE({.upper_inodes = 512, .scratch_inodes = 100});
  EXPECT_NE(ask("cd /tmp; for i in $(seq 200); do : > a$i || exit 1; done").code, 0);
  EXPECT_NE(ask("cd /dev/shm; for i in $(seq 200); do : > a$i || exit 1; done").code, 0);
  EXPECT_LT(std::stoi(said("ls /tmp /dev/shm | wc -l")), 200);
  EXPECT_NE(ask("cd /home/sandbox; for i in $(seq 600); do : > a$i || exit 1; done").code, 0);
}

TEST_P(SandboxWalls, RlimitsHold) {
  CONFINE({.rlimits = {{.resource = 1, .soft = 1000, .hard = 1000}}});  // RLIMIT_FSIZE
  EXPECT_NE(ask("head -c 2000 /dev/zero > /tmp/file").code, 0);
  EXPECT_EQ(said("stat -c %s /tmp/file"), "1000\n");
}

TEST_P(SandboxWalls, DirectoriesAreMadeForTheUser) {
  CONFINE({.directories = {"/a/b/workspace"}});
  EXPECT_EQ(said("stat -c %u /a/b/workspace; touch /a/b/workspace/file"), "1000\n");
}

TEST_P(SandboxWalls, ADebuggerIsRefusedUnlessThePlanAllowsIt) {
  Plan plan;
  plan.allow(keeper::sandbox::AllowPtrace{});
  CONFINE(plan);
  EXPECT_EQ(confined().level, keeper::sandbox::Level::standard);
  EXPECT_EQ(said("setarch -R true && echo allowed"), "allowed\n");
}

TEST_P(SandboxWalls, AddressesStayRandomWithoutThatWeakening) {
  CONFINE();
  EXPECT_NE(ask("setarch -R true").code, 0);
}

TEST_P(SandboxWalls, TheHostsNetworkIsThereOnlyWhenAllowed) {
  Plan plan;
  plan.allow(keeper::sandbox::AllowHostNetwork{});
  CONFINE(plan);
  EXPECT_EQ(confined().level, keeper::sandbox::Level::weak);
  EXPECT_EQ(said("readlink /proc/self/ns/net"),
            fs::read_symlink("/proc/self/ns/net").string() + "\n");
}

TEST_P(SandboxWalls, TheHostsNameServersAreThereWithItsNetworkOnly) {
  const std::string names = read_file("/etc/resolv.conf", 1 << 16).value_or("");
  if (names.empty()) GTEST_SKIP() << "this host has no name servers";
  Plan plan;
  plan.allow(keeper::sandbox::AllowHostNetwork{});
  CONFINE(plan);
  EXPECT_EQ(said("cat /etc/resolv.conf"), names);
  EXPECT_NE(ask("echo x > /etc/resolv.conf").code, 0);
}

TEST_P(SandboxWalls, WithoutTheHostsNetworkThereAreNoNameServers) {
  CONFINE();
  EXPECT_NE(ask("test -e /etc/resolv.conf").code, 0);
}

TEST_P(SandboxWalls, TheHostsNameServersCoverALinkOfTheImageThatLeadsNowhere) {
  const std::string names = read_file("/etc/resolv.conf", 1 << 16).value_or("");
  if (names.empty()) GTEST_SKIP() << "this host has no name servers";
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/etc");
  fs::create_symlink("../run/systemd/resolve/stub-resolv.conf", layer + "/etc/resolv.conf");
  Plan plan{.layers = {layer}};
  plan.allow(keeper::sandbox::AllowHostNetwork{});
  CONFINE(plan);
  EXPECT_EQ(said("cat /etc/resolv.conf"), names);
  EXPECT_NE(ask("test -e /run/systemd").code, 0);
}

TEST_P(SandboxWalls, TheHostsNameServersAreInAnImageThatHasNone) {
  const std::string names = read_file("/etc/resolv.conf", 1 << 16).value_or("");
  if (names.empty()) GTEST_SKIP() << "this host has no name servers";
  const std::string layer = folder_for_keeper("layer");
  fs::create_directory(layer + "/bin");
  Plan plan{.base = Base::layers, .layers = {layer}};
  plan.allow(keeper::sandbox::AllowHostNetwork{});
  CONFINE(plan);
  const auto root = client().root();
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(text_in(*root, "etc/resolv.conf"), names);
}

}  // namespace
}  // namespace berth::keeper_test
