#include "images/image_user.hpp"

#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace berth::images {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const Accounts accounts{.passwd =
                            "root:x:0:0:root:/root:/bin/sh\n"
                            "# a line that tells of nobody\n"
                            "app:x:33:7:the app:/srv/app/:/bin/sh\n"
                            "1001:x:44:45::/named/like/a/number:\n"
                            "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
                            "up:x:5:5::/srv/../etc:\n"
                            "far:x:70000:7::/srv/far:\n"
                            "second:x:33:8::/srv/second:\n",
                        .group =
                            "root:x:0:\nstaff:x:50:app,second\nwww:x:7:app\n"
                            "audio:x:29:other,app\naudio2:x:29:app\nwide:x:70000:\n"};

ImageUser found(std::string_view spelled, const Accounts& where = accounts) {
  const auto user = find_user(spelled, where);
  EXPECT_TRUE(user) << spelled << ": " << user.error().message;
  return user.value_or(ImageUser{.uid = 99999});
}

TEST(ImageUserTest, ANameHasItsIdsItsHomeAndAllItsGroupsOnce) {
  EXPECT_EQ(found("app"), (ImageUser{.uid = 33, .gid = 7, .groups = {50, 29}, .home = "/srv/app"}));
}

TEST(ImageUserTest, ANumberThatIsKnownIsTheFirstUserOfThatNumber) {
  EXPECT_EQ(found("33"), found("app"));
}

TEST(ImageUserTest, ANumberThatIsNotKnownIsInTheGroupOfRootAndHasNoHome) {
  EXPECT_EQ(found("1002"), (ImageUser{.uid = 1002, .gid = 0}));
  EXPECT_EQ(found("1002", {}), (ImageUser{.uid = 1002, .gid = 0}));
}

TEST(ImageUserTest, ANameThatIsANumberIsAName) {
  EXPECT_EQ(found("1001"), (ImageUser{.uid = 44, .gid = 45, .home = "/named/like/a/number"}));
}

TEST(ImageUserTest, AGroupThatIsNamedIsTheOnlyOne) {
  EXPECT_EQ(found("app:staff"), (ImageUser{.uid = 33, .gid = 50, .home = "/srv/app"}));
  EXPECT_EQ(found("app:0"), (ImageUser{.uid = 33, .gid = 0, .home = "/srv/app"}));
  EXPECT_EQ(found("4:9", {}), (ImageUser{.uid = 4, .gid = 9}));
}

TEST(ImageUserTest, AHomeThatCannotBeMadeIsNone) {
  EXPECT_EQ(found("sys").home, "");
  EXPECT_EQ(found("up").home, "");
}

TEST(ImageUserTest, WhoeverIsNotThereIsNamedInTheRefusal) {
  const auto refused = [](std::string_view spelled) {
    const auto user = find_user(spelled, accounts);
    EXPECT_FALSE(user) << spelled;
    if (user) return std::string{};
    EXPECT_EQ(user.error().code, Errc::image_invalid) << spelled;
    return user.error().message;
  };
  EXPECT_THAT(refused("nobody"), HasSubstr("'nobody'"));
  EXPECT_THAT(refused("app:nobody"), HasSubstr("'nobody'"));
  EXPECT_THAT(refused("70000"), HasSubstr("70000"));
  EXPECT_THAT(refused("far"), HasSubstr("70000"));
  EXPECT_THAT(refused("app:wide"), HasSubstr("70000"));
  for (const char* odd :
       {"", ":", ":0", "app:", "-1", "+1", "0x10", " 0", "18446744073709551616"}) {
    refused(odd);
  }
}

class UserOfATree : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root() + "/etc"); }
  std::string root() const { return folder_.file("root"); }
  std::string beside(const char* name) const { return folder_.file(name); }
  void write(const std::string& path, std::string_view text) { std::ofstream{path} << text; }
  Result<ImageUser> look(std::string user) const {
    Image image;
    image.names = {"web:latest"};
    image.config.user = std::move(user);
    return user_of(image, root());
  }

 private:
  tests::TemporaryFolder folder_;
};

TEST_F(UserOfATree, IsFoundInItsOwnFiles) {
  write(root() + "/etc/passwd", accounts.passwd);
  write(root() + "/etc/group", accounts.group);
  const auto user = look("app");
  ASSERT_TRUE(user) << user.error().message;
  EXPECT_EQ(*user, found("app"));
}

TEST_F(UserOfATree, IsFoundBehindALinkThatMeansTheRootOfTheTree) {
  fs::create_directories(root() + "/usr/lib");
  write(root() + "/usr/lib/passwd", accounts.passwd);
  fs::create_symlink("/usr/lib/passwd", root() + "/etc/passwd");
  const auto user = look("app");
  ASSERT_TRUE(user) << user.error().message;
  EXPECT_EQ(user->uid, 33U);
}

TEST_F(UserOfATree, IsNotLookedForInFilesOfTheHost) {
  write(beside("passwd"), accounts.passwd);
  for (const std::string& target : {beside("passwd"), std::string{"../../passwd"}}) {
    fs::remove(root() + "/etc/passwd");
    fs::create_symlink(target, root() + "/etc/passwd");
    EXPECT_FALSE(look("app")) << target;
  }
}

TEST_F(UserOfATree, WithAPipeOrATooLongFileIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((root() + "/etc/passwd").c_str(), 0600), 0);
  EXPECT_FALSE(look("0"));
  fs::remove(root() + "/etc/passwd");
  write(root() + "/etc/passwd", std::string((1 << 20) + 1, '\n'));
  EXPECT_FALSE(look("0"));
}

TEST_F(UserOfATree, ThatIsUnknownIsRefusedWithTheImageTheUserAndTheRemedy) {
  const auto user = look("ghost");
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, Errc::image_invalid);
  EXPECT_THAT(user.error().message, AllOf(HasSubstr("web:latest"), HasSubstr("'ghost'")));
  EXPECT_THAT(user.error().remedy, HasSubstr("`user: root`"));
}

}  // namespace
}  // namespace berth::images
