#pragma once

#include "integration/keeper_fixture.hpp"

#include <cstdint>
#include <string>
#include <vector>

// Real sandboxes, each around a keeper's commands, created by root and by an ordinary user.
namespace berth::keeper_test {

enum class Maker : std::uint8_t { root, user };

class SandboxTest : public KeeperTest, public testing::WithParamInterface<Maker> {
 protected:
  void SetUp() override;
  void TearDown() override;
  std::string keeper_program() override;

  static bool is_by_root() { return GetParam() == Maker::root; }
  // Skips the test if this machine does not allow sandboxes.
  void confine(const keeper::sandbox::Plan& plan = {});
  const keeper::Confined& confined() const { return confined_; }

  keeper::Exec inside(std::string script);
  // A script's stdout inside; it must exit with 0.
  std::string said(std::string script);
  // Its exit code and both outputs.
  struct Answer {
    int code = -1;
    std::string text = {};
  };
  Answer ask(std::string script);
  // A folder of the test that belongs to the keeper's user.
  std::string folder_for_keeper(const std::string& name);
  void give_to_keeper(const std::string& path);

 private:
  keeper::Confined confined_;
};

}  // namespace berth::keeper_test
