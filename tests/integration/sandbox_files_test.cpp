#include "integration/sandbox_fixture.hpp"
#include "workspaces/archive_in.hpp"
#include "workspaces/archive_out.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

// Files in and out of a real sandbox, through the descriptor of its root, while the processes
// inside interfere.
namespace berth::keeper_test {
namespace {

using workspaces::ByteSink;
using workspaces::ByteSource;
using workspaces::Confined;
using workspaces::Look;
using workspaces::Mounts;
using workspaces::Owner;

class SandboxFiles : public SandboxTest {
 protected:
  // The user of that server: root, or the ordinary user.
  void become_maker() {
    struct stat status{};
    ASSERT_EQ(::stat(folder().c_str(), &status), 0);
    ASSERT_EQ(::setegid(status.st_gid), 0);
    ASSERT_EQ(::seteuid(status.st_uid), 0);
  }
  void open() {
    confine({.directories = {"/workspace"}});
    if (IsSkipped() || HasFatalFailure()) return;
    auto root = client().root();
    ASSERT_TRUE(root) << root.error().message;
    said("mkdir /tmp/work && chmod 700 /tmp/work");
    become_maker();
    struct stat status{};
    ASSERT_EQ(::fstatat(root->get(), "tmp/work", &status, AT_SYMLINK_NOFOLLOW), 0);
    owner_ = {.uid = status.st_uid, .gid = status.st_gid};
    files_.emplace(*std::move(root), Mounts::entered, workspaces::Limits{}, owner_);
  }
  void TearDown() override {
    ASSERT_EQ(::seteuid(0), 0);
    ASSERT_EQ(::setegid(0), 0);
    files_.reset();
    SandboxTest::TearDown();
  }

  const Confined& files() const { return *files_; }
  Look look(mode_t mode) const { return {.mode = mode, .owner = owner_}; }
  const Owner& owner() const { return owner_; }
  Result<std::uint64_t> write(const std::string& path, std::string_view text) const {
    const ByteSource source = [text]() mutable -> Result<std::string_view> {
      return std::exchange(text, {});
    };
    return files().write_file(path, source, look(0640));
  }
  Result<std::string> read(const std::string& path) const {
    std::string text;
    BERTH_TRY(const auto view, files().read_file(path, [&](std::string_view piece) {
      text += piece;
      return Result<>{};
    }));
    EXPECT_EQ(view.bytes, text.size());
    return text;
  }

 private:
  std::optional<Confined> files_;
  Owner owner_;
};

INSTANTIATE_TEST_SUITE_P(By, SandboxFiles, testing::Values(Maker::root, Maker::user),
                         [](const auto& by) {
                           return by.param == Maker::root ? "Root" : "OrdinaryUser";
                         });

#define OPEN() \
  open();      \
  if (IsSkipped() || HasFatalFailure()) return

TEST_P(SandboxFiles, WhatIsWrittenBelongsToTheUserInside) {
  OPEN();
  const auto written = write("tmp/work/deep/file", "from outside");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(said("cd /tmp/work && cat deep/file && stat -c ' %a %U' deep/file | tr -d '\\n' &&"
                 " echo more >> deep/file && rm -r deep && id -un > /dev/null"),
            "from outside 640 " + said("id -un | tr -d '\\n'"));
}

TEST_P(SandboxFiles, WhatTheInsideWroteIsReadFromItsRootAndItsMounts) {
  OPEN();
  said("echo in tmp > /tmp/work/one");
  EXPECT_EQ(read("tmp/work/one"), "in tmp\n");
  EXPECT_TRUE(files().list("usr/bin").has_value());
}

TEST_P(SandboxFiles, TheKernelsOwnFilesAndThoseOfTheImageStayAsTheyAre) {
  OPEN();
  for (const std::string path :
       {"proc/1/environ", "proc/self/root/etc/passwd", "proc/version", "dev/null", "dev/zero"}) {
    EXPECT_EQ(read(path).error().code, Errc::path_refused) << path;
  }
  EXPECT_EQ(write("proc/sys/kernel/hostname", "x").error().code, Errc::path_refused);
  EXPECT_EQ(write("usr/planted", "x").error().code, Errc::path_refused);
}

TEST_P(SandboxFiles, WhatIsClosedToTheUserInsideIsClosedToUs) {
  OPEN();
  said("echo mine > /tmp/work/closed && chmod 000 /tmp/work/closed");
  EXPECT_EQ(read("tmp/work/closed").error().code, Errc::path_refused);
}

TEST_P(SandboxFiles, TrapsThatTheInsideLaysAreRefused) {
  OPEN();
  said(
      "cd /tmp/work && ln -s /etc/passwd link && ln -s / up && mkfifo pipe && truncate -s 1T holes"
      " && echo x > twice && ln twice again");
  for (const std::string trap : {"link", "up/etc/passwd", "pipe", "holes", "twice"}) {
    EXPECT_EQ(read("tmp/work/" + trap).error().code, Errc::path_refused) << trap;
  }
  EXPECT_EQ(write("tmp/work/up/tmp/x", "x").error().code, Errc::path_refused);
  ASSERT_TRUE(files().remove("tmp/work/up").has_value());
  EXPECT_EQ(said("test -d /etc && echo there"), "there\n");
}

TEST_P(SandboxFiles, ATreeGoesInAndComesOutAsAnArchive) {
  OPEN();
  // One is a separate mount, the other is on the root's overlay.
  for (const std::string place : {"tmp/work", "workspace"}) {
    said(
        "cd /" + place +
        " && mkdir -p a/empty a/b && echo text > a/b/file && chmod 751 a/b && ln -s b/file a/link");
    std::string tar;
    const ByteSink sink = [&](std::string_view piece) {
      tar += piece;
      return Result<>{};
    };
    const auto packed = workspaces::archive_out(files(), place + "/a", sink);
    ASSERT_TRUE(packed) << packed.error().message;
    const auto unpack = [&] {
      const ByteSource source = [left =
                                     std::string_view{tar}]() mutable -> Result<std::string_view> {
        return std::exchange(left, {});
      };
      return workspaces::archive_in(files(), place + "/copy", source, {.owner = owner()});
    };
    for (const std::string step : {"into nothing", "over itself"}) {
      const auto unpacked = unpack();
      ASSERT_TRUE(unpacked) << step << ": " << unpacked.error().message;
      EXPECT_EQ(said("cd /" + place + " && diff -r a copy && stat -c '%a' copy/b && ls -A . &&" +
                     " find copy ! -user $(id -u)"),
                "751\na\ncopy\n");
    }
    EXPECT_EQ(said("cd /" + place + " && rm -r copy && ls -A"), "a\n");
  }
}

TEST_P(SandboxFiles, ARootInMotionNeverLetsAWriteOut) {
  OPEN();
  // Inside, a folder and a link to the host's root with the same name are swapped all the time.
  keeper::Exec swap = inside(
      "cd /tmp/work && mkdir real && ln -s ../../../../../../../tmp link &&"
      " echo ready && while :; do mv -T real x; mv -T link real;"
      " mv -T real link; mv -T x real; done");
  ASSERT_TRUE(client().exec(swap).has_value());
  EXPECT_EQ(wait_for_output(swap.exec_id, "ready\n"), "ready\n");
  const std::string name = "berth-planted-" + std::to_string(::getpid());
  int written = 0;
  for (int i = 0; i < 20'000 && (i < 300 || written == 0); ++i) {
    if (write("tmp/work/real/" + name, "x")) ++written;
  }
  EXPECT_GT(written, 0);
  ASSERT_TRUE(client().cancel(swap.exec_id, 0ms).has_value());
  EXPECT_NE(::access(("/tmp/" + name).c_str(), F_OK), 0) << "on the host";
  EXPECT_NE(ask("test -e /tmp/" + name).code, 0) << "through the link";
}

}  // namespace
}  // namespace berth::keeper_test
