#include "vault/vault.hpp"

#include "base/files.hpp"
#include "support/full_disk.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <filesystem>
#include <set>
#include <thread>

namespace berth::vault {
namespace {

using testing::HasSubstr;

constexpr auto context = "secret:42:1";

class VaultTest : public testing::Test {
 protected:
  std::string file() const { return folder_ + "/master.key"; }
  KeySource from_file() const { return {.file = file()}; }
  Vault open_file() { return Vault::open(from_file(), random_).value(); }
  Vault open_with(std::string key, std::optional<std::string> previous = {}) {
    return Vault::open({.key = std::move(key), .previous_key = std::move(previous)}, random_)
        .value();
  }
  Error refusal(KeySource source) {
    Result<Vault> vault = Vault::open(std::move(source), random_);
    EXPECT_FALSE(vault);
    return vault ? Error{} : vault.error();
  }
  void write(std::string_view text, mode_t mode = 0600) {
    ASSERT_TRUE(replace_file(file(), text, 0600));
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
  }
  std::string text() const { return read_file(file(), 65536).value(); }

  const tests::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
  SystemRandom random_;
};

const std::string hex_key(64, 'a');
const std::string other_key(64, 'b');

TEST_F(VaultTest, WhatIsSealedOpensToTheSameBytes) {
  Vault vault = open_file();
  const std::string all_bytes = [] {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    return bytes;
  }();
  for (const std::string& value :
       {std::string{}, std::string{"x"}, all_bytes, std::string(100'000, 'z')}) {
    const Sealed sealed = vault.seal(value, context);
    EXPECT_EQ(sealed.key_id, vault.current_key_id());
    const Result<Secret> opened = vault.unseal(sealed, context);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->reveal(), value);
  }
}

TEST_F(VaultTest, SealingTwiceGivesDifferentTexts) {
  Vault vault = open_file();
  EXPECT_NE(vault.seal("same", context).text, vault.seal("same", context).text);
}

TEST_F(VaultTest, NoChangedByteOfASealedTextOpens) {
  Vault vault = open_file();
  const Sealed sealed = vault.seal("the value", context);
  for (std::size_t at = 0; at < sealed.text.size(); ++at) {
    for (const char wrong : {static_cast<char>(sealed.text[at] ^ 1), 'A', 'z', '=', ' ', '\0'}) {
      if (wrong == sealed.text[at]) continue;
      Sealed changed = sealed;
      changed.text[at] = wrong;
      const Result<Secret> opened = vault.unseal(changed, context);
      ASSERT_FALSE(opened) << "byte " << at << " as " << static_cast<int>(wrong);
      EXPECT_EQ(opened.error().code, Errc::unseal_failed);
    }
  }
}

TEST_F(VaultTest, NoShortenedOrLengthenedTextOpens) {
  Vault vault = open_file();
  const Sealed sealed = vault.seal("the value", context);
  for (std::size_t length = 0; length < sealed.text.size(); ++length) {
    EXPECT_FALSE(vault.unseal({sealed.key_id, sealed.text.substr(0, length)}, context)) << length;
  }
  EXPECT_FALSE(vault.unseal({sealed.key_id, sealed.text + "AAAA"}, context));
  EXPECT_FALSE(vault.unseal({sealed.key_id, sealed.text + "\n"}, context));
}

TEST_F(VaultTest, ASealedTextDoesNotOpenInAnotherContext) {
  Vault vault = open_file();
  const Sealed sealed = vault.seal("v", context);
  for (const auto* other : {"secret:42:2", "secret:43:1", "", "secret:42:1 "}) {
    const Result<Secret> opened = vault.unseal(sealed, other);
    ASSERT_FALSE(opened) << other;
    EXPECT_EQ(opened.error().code, Errc::unseal_failed);
  }
}

TEST_F(VaultTest, AMissingKeyIsNamedByItsId) {
  Vault ours = open_with(hex_key);
  Vault theirs = open_with(other_key);
  const Sealed sealed = theirs.seal("v", context);
  const Result<Secret> opened = ours.unseal(sealed, context);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::unseal_failed);
  EXPECT_THAT(opened.error().message, HasSubstr(theirs.current_key_id()));
  EXPECT_FALSE(opened.error().remedy.empty());
}

TEST_F(VaultTest, AValueClaimedForAnotherKeyDoesNotOpen) {
  Vault both = open_with(hex_key, other_key);
  Vault theirs = open_with(other_key);
  Sealed sealed = theirs.seal("v", context);
  EXPECT_TRUE(both.unseal(sealed, context));
  sealed.key_id = both.current_key_id();
  EXPECT_FALSE(both.unseal(sealed, context));
}

TEST_F(VaultTest, FingerprintsTellEqualValuesUnderOneKeyOnly) {
  Vault ours = open_with(hex_key);
  Vault theirs = open_with(other_key);
  EXPECT_EQ(ours.fingerprint("v"), ours.fingerprint("v"));
  EXPECT_NE(ours.fingerprint("v"), ours.fingerprint("w"));
  EXPECT_NE(ours.fingerprint("v"), theirs.fingerprint("v"));
  EXPECT_EQ(ours.fingerprint("").size(), 64u);
}

TEST_F(VaultTest, EverySpellingOfAKeyIsTheSameKey) {
  // 0xfb 0xff ... in base64 contains both characters in which the two alphabets differ.
  const std::string in_hex = "fbff" + std::string(60, '0');
  const std::string in_base64 = "+/8" + std::string(40, 'A') + "=";
  const std::string in_base64url = "-_8" + std::string(40, 'A');
  const std::string id = open_with(in_hex).current_key_id();
  EXPECT_EQ(id.size(), 16u);
  EXPECT_EQ(open_with(in_base64).current_key_id(), id);
  EXPECT_EQ(open_with(in_base64.substr(0, 43)).current_key_id(), id);
  EXPECT_EQ(open_with(in_base64url).current_key_id(), id);
  EXPECT_EQ(open_with(in_base64url + "=").current_key_id(), id);
  EXPECT_EQ(open_with(in_hex + "\n").current_key_id(), id);
}

TEST_F(VaultTest, AKeyOfAnotherLengthIsRefusedWithoutRepeatingIt) {
  for (const std::string& wrong :
       {std::string{}, std::string{"hunter2"}, std::string(63, 'a'), std::string(66, 'a'),
        std::string(42, 'A'), std::string(64, 'g'), std::string(44, '*')}) {
    const Error error = refusal({.key = wrong});
    EXPECT_EQ(error.code, Errc::master_key_invalid) << wrong;
    EXPECT_THAT(error.message, HasSubstr("BERTH_MASTER_KEY"));
    if (!wrong.empty()) EXPECT_THAT(error.message, testing::Not(HasSubstr(wrong)));
  }
  EXPECT_THAT(refusal({.key = hex_key, .previous_key = "x"}).message,
              HasSubstr("BERTH_MASTER_KEY_PREVIOUS"));
  EXPECT_EQ(refusal({.previous_key = hex_key, .file = file()}).code, Errc::master_key_invalid);
}

TEST_F(VaultTest, TheFirstOpenMakesAPrivateFileThatTheSecondReads) {
  const std::string id = open_file().current_key_id();
  struct stat found{};
  ASSERT_EQ(::stat(file().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_THAT(text(), testing::StartsWith("berth-key-v1 " + id + " "));
  EXPECT_EQ(open_file().current_key_id(), id);
}

TEST_F(VaultTest, AMissingFileIsNotMadeWhenSecretsExist) {
  const Error error = refusal({.file = file(), .may_create = false});
  EXPECT_EQ(error.code, Errc::master_key_missing);
  EXPECT_THAT(error.remedy, HasSubstr("backup"));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(VaultTest, AFileThatOthersCanReadIsRefused) {
  open_file();
  for (const mode_t mode : {0640U, 0604U, 0660U, 0601U, 0644U}) {
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
    const Error error = refusal(from_file());
    EXPECT_EQ(error.code, Errc::master_key_exposed) << std::oct << mode;
    EXPECT_THAT(error.remedy, HasSubstr("chmod 600 " + file()));
  }
  for (const mode_t mode : {0600U, 0400U}) {
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
    EXPECT_TRUE(Vault::open(from_file(), random_)) << std::oct << mode;
  }
}

// Only a child process can run as another user. It ends with _exit, and its exit code reports what
// it saw.
TEST_F(VaultTest, AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  open_file();
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  // Readable by everyone, or the kernel would reject the child before the vault does.
  ASSERT_EQ(::chown(file().c_str(), 65533, 65533), 0);
  ASSERT_EQ(::chmod(file().c_str(), 0644), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setegid(65534) != 0 || ::seteuid(65534) != 0) ::_exit(2);
    const Result<Vault> vault = Vault::open(from_file(), random_);
    ::_exit(!vault && vault.error().message.contains("belongs to user 65533") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(VaultTest, AFileOfAnotherUserIsRefusedByRootToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  open_file();
  ASSERT_EQ(::chown(file().c_str(), 65533, 65533), 0);
  const Error error = refusal(from_file());
  EXPECT_EQ(error.code, Errc::master_key_exposed);
  EXPECT_THAT(error.remedy, HasSubstr("chown 0 " + file()));
}

TEST_F(VaultTest, ALinkIsFollowedAndItsTargetIsHeldToTheRules) {
  open_file();
  const std::string link = folder_ + "/link.key";
  ASSERT_EQ(::symlink(file().c_str(), link.c_str()), 0);
  Vault vault = Vault::open({.file = link}, random_).value();
  ASSERT_TRUE(vault.begin_rotation());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(open_file().current_key_id(), vault.current_key_id());
  ASSERT_EQ(::chmod(file().c_str(), 0644), 0);
  EXPECT_EQ(refusal({.file = link}).code, Errc::master_key_exposed);
}

TEST_F(VaultTest, ALinkToNothingIsNoPlaceForAKey) {
  ASSERT_EQ(::symlink((folder_ + "/nowhere").c_str(), file().c_str()), 0);
  EXPECT_EQ(refusal(from_file()).code, Errc::master_key_missing);
}

TEST_F(VaultTest, AFifoOrDirectoryIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(refusal(from_file()).code, Errc::master_key_invalid);
  EXPECT_EQ(refusal({.file = folder_}).code, Errc::master_key_invalid);
}

TEST_F(VaultTest, AMalformedFileIsRefusedByLineWithoutItsContent) {
  open_file();
  const std::string good = text();
  struct Case {
    std::string text;
    const char* says;
  };
  std::string damaged = good;
  damaged[40] = damaged[40] == 'A' ? 'B' : 'A';
  for (const auto& [wrong, says] : {
           Case{"", "line 1"},
           Case{"\n\n", "no key"},
           Case{"hunter2", "line 1"},
           Case{good + "hunter2\n", "line 2"},
           Case{good + good, "line 2: repeats"},
           Case{damaged, "does not match"},
           Case{good.substr(0, good.size() - 5), "line 1"},
           Case{"berth-key-v1", "line 1"},
           Case{"berth-key-v2" + good.substr(12), "line 1"},
           Case{std::string(20'000, 'x'), "larger than"},
       }) {
    write(wrong);
    const Error error = refusal(from_file());
    EXPECT_EQ(error.code, Errc::master_key_invalid) << says;
    EXPECT_THAT(error.message, HasSubstr(says));
    EXPECT_THAT(error.message, testing::Not(HasSubstr("hunter2")));
    EXPECT_FALSE(error.remedy.empty());
    EXPECT_EQ(text(), wrong) << "a file that cannot be read is never overwritten";
  }
}

TEST_F(VaultTest, OfEightThreadsThatOpenAtOnceAllHaveTheSameKey) {
  std::array<std::string, 8> ids;
  std::barrier start{8};
  {
    std::vector<std::jthread> threads;
    for (std::string& id : ids) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        const Result<Vault> vault = Vault::open(from_file(), random_);
        id = vault ? vault->current_key_id() : vault.error().message;
      });
    }
  }
  EXPECT_EQ((std::set<std::string>{ids.begin(), ids.end()}), (std::set{ids.front()}));
  EXPECT_EQ(ids.front(), open_file().current_key_id());
}

TEST_F(VaultTest, OfEightProcessesThatOpenAtOnceAllHaveTheSameKey) {
  std::array<int, 2> answers{};
  std::array<int, 2> gate{};
  ASSERT_EQ(::pipe(answers.data()), 0);
  ASSERT_EQ(::pipe(gate.data()), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(gate[1]);
      char byte = 0;
      (void)!::read(gate[0], &byte, 1);  // returns when the parent closes the gate
      const Result<Vault> vault = Vault::open(from_file(), random_);
      const std::string id = vault ? vault->current_key_id() : std::string(16, '!');
      (void)!::write(answers[1], id.data(), 16);
      ::_exit(0);
    }
    children.push_back(child);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  ::close(answers[1]);
  const std::string all = read_fd(answers[0], 4096, "answers").value();
  ::close(answers[0]);
  ASSERT_EQ(all.size(), 8u * 16u);
  const std::string id = open_file().current_key_id();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(all.substr(i * 16, 16), id);
}

TEST_F(VaultTest, ARotationOpensOldAndNewUntilItIsFinished) {
  Vault vault = open_file();
  const std::string& first_id = vault.current_key_id();
  const Sealed old = vault.seal("old", context);
  ASSERT_TRUE(vault.begin_rotation());
  EXPECT_NE(vault.current_key_id(), first_id);
  EXPECT_EQ(first_id, old.key_id) << "an id that was given out stays valid";
  EXPECT_EQ(vault.unseal(old, context).value().reveal(), "old");
  const Sealed fresh = vault.seal("old", context);
  EXPECT_EQ(fresh.key_id, vault.current_key_id());
  ASSERT_TRUE(vault.finish_rotation());
  EXPECT_FALSE(vault.has_key(old.key_id));
  EXPECT_FALSE(vault.unseal(old, context));
  EXPECT_EQ(vault.unseal(fresh, context).value().reveal(), "old");
  EXPECT_EQ(std::ranges::count(text(), '\n'), 1);
}

TEST_F(VaultTest, ACrashBetweenBeginAndFinishLosesNothing) {
  std::vector<Sealed> sealed;
  {
    Vault crashed = open_file();
    sealed.push_back(crashed.seal("before", context));
    ASSERT_TRUE(crashed.begin_rotation());
    sealed.push_back(crashed.seal("after", context));
  }
  Vault again = Vault::open({.file = file(), .may_create = false}, random_).value();
  for (const Sealed& one : sealed) EXPECT_TRUE(again.unseal(one, context));
  const std::string begun = again.current_key_id();
  ASSERT_TRUE(again.begin_rotation());
  EXPECT_EQ(again.current_key_id(), begun) << "the begun rotation goes on";
  for (const Sealed& one : sealed) EXPECT_TRUE(again.unseal(one, context));
  ASSERT_TRUE(again.finish_rotation());
  EXPECT_TRUE(again.unseal(sealed[1], context));
}

TEST_F(VaultTest, AFileThatCannotBeReplacedLeavesTheVaultAsItWas) {
  Vault vault = open_file();
  const std::string id = vault.current_key_id();
  const bool rotated = [&] {
    const tests::FullDisk full;
    return vault.begin_rotation().has_value();
  }();
  EXPECT_FALSE(rotated);
  EXPECT_EQ(vault.current_key_id(), id);
  EXPECT_EQ(open_file().current_key_id(), id);
}

TEST_F(VaultTest, AnotherProcessSeesTheRotationAfterReload) {
  Vault ours = open_file();
  Vault theirs = open_file();
  ASSERT_TRUE(ours.begin_rotation());
  const Sealed sealed = ours.seal("v", context);
  EXPECT_FALSE(theirs.unseal(sealed, context));
  ASSERT_TRUE(theirs.reload());
  EXPECT_TRUE(theirs.unseal(sealed, context));
  EXPECT_EQ(theirs.current_key_id(), ours.current_key_id());
}

TEST_F(VaultTest, AFinishAfterAnotherRotationIsAConflict) {
  Vault ours = open_file();
  Vault theirs = open_file();
  ASSERT_TRUE(ours.begin_rotation());
  ASSERT_TRUE(ours.finish_rotation());
  const Result<> finished = theirs.finish_rotation();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, Errc::conflict);
}

TEST_F(VaultTest, AFileThatVanishedIsNeverMadeAnewByReloadOrRotation) {
  Vault vault = open_file();
  ASSERT_EQ(::unlink(file().c_str()), 0);
  EXPECT_EQ(vault.reload().error().code, Errc::master_key_missing);
  EXPECT_EQ(vault.begin_rotation().error().code, Errc::master_key_missing);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(VaultTest, KeysOfTheEnvironmentRotateFromThePreviousOne) {
  Vault old = open_with(hex_key);
  const Sealed sealed = old.seal("v", context);
  EXPECT_EQ(old.begin_rotation().error().code, Errc::master_key_missing);
  Vault same = open_with(hex_key, hex_key);
  EXPECT_FALSE(same.begin_rotation());
  Vault both = open_with(other_key, hex_key);
  ASSERT_TRUE(both.begin_rotation());
  EXPECT_TRUE(both.unseal(sealed, context));
  EXPECT_EQ(both.seal("v", context).key_id, open_with(other_key).current_key_id());
  EXPECT_TRUE(both.finish_rotation());
  EXPECT_TRUE(both.reload());
}

TEST_F(VaultTest, ReadersAndARotationShareTheVault) {
  Vault vault = open_file();
  const Sealed sealed = vault.seal("v", context);
  std::vector<std::jthread> readers;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        if (!vault.unseal(sealed, context)) ++failures;
        const Sealed mine = vault.seal("x", context);
        if (!vault.unseal(mine, context)) ++failures;
      }
    });
  }
  EXPECT_TRUE(vault.begin_rotation());
  EXPECT_TRUE(vault.reload());
  readers.clear();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace berth::vault
