#include "integration/sandbox_fixture.hpp"

#include "keeper/sandbox/cgroup/cgroup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace berth::keeper_test {
namespace {

constexpr uid_t ordinary = 65534;

}  // namespace

void SandboxTest::SetUp() {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, also to become an ordinary user";
  KeeperTest::SetUp();
}

void SandboxTest::TearDown() {
  if (::geteuid() != 0) return;
  const std::string mark = "." + std::to_string(keeper_pid()) + "-";
  KeeperTest::TearDown();
  // A killed keeper's leftovers are removed by the next sweep.
  const auto left = keeper::sandbox::sweep_leftovers(keeper::sandbox::detect_layout());
  EXPECT_TRUE(
      std::ranges::none_of(left, [&](const std::string& name) { return name.contains(mark); }));
}

std::string SandboxTest::keeper_program() {
  if (is_by_root()) return BERTH_KEEPER;
  // An ordinary user may not be able to reach the build folder.
  const std::string copy = root() + "/berth-keeper";
  std::filesystem::copy_file(BERTH_KEEPER, copy);
  const std::string starter = root() + "/start";
  std::ofstream{starter} << "#!/bin/sh\nexec setpriv --reuid " << ordinary << " --regid "
                         << ordinary << " --clear-groups -- " << copy << " \"$@\"\n";
  ::chmod(starter.c_str(), 0755);
  ::chmod(root().c_str(), 0755);
  folder_for_keeper("k");
  return starter;
}

std::string SandboxTest::folder_for_keeper(const std::string& name) {
  const std::string path = root() + "/" + name;
  std::filesystem::create_directories(path);
  ::chmod(root().c_str(), 0755);
  give_to_keeper(path);
  return path;
}

void SandboxTest::give_to_keeper(const std::string& path) {
  if (!is_by_root() && ::chown(path.c_str(), ordinary, ordinary) != 0) ADD_FAILURE() << path;
}

void SandboxTest::confine(const keeper::sandbox::Plan& plan) {
  auto made = client().confine(plan);
  if (!made && made.error().code == Errc::sandbox_unavailable) {
    GTEST_SKIP() << made.error().message << "; " << made.error().remedy;
  }
  ASSERT_TRUE(made) << made.error().message;
  confined_ = *std::move(made);
}

keeper::Exec SandboxTest::inside(std::string script) {
  keeper::Exec exec = shell(std::move(script));
  exec.cwd = "/";
  return exec;
}

SandboxTest::Answer SandboxTest::ask(std::string script) {
  const keeper::Exec exec = inside(std::move(script));
  const keeper::Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, keeper::Outcome::exited) << ended.message;
  const Streams streams = output_of(exec.exec_id);
  return {.code = ended.code, .text = streams.out + streams.err};
}

std::string SandboxTest::said(std::string script) {
  const keeper::Exec exec = inside(std::move(script));
  const keeper::Ended ended = run(exec);
  const Streams streams = output_of(exec.exec_id);
  EXPECT_EQ(ended.code, 0) << streams.err;
  return streams.out;
}

}  // namespace berth::keeper_test
