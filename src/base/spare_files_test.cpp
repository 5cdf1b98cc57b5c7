#include "base/spare_files.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace berth {
namespace {

class Nameless : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

  tests::TemporaryFolder folder_;
  SpareFiles files_{folder_.path()};
};

TEST_F(Nameless, AreNotSeenUntilTheyAreNamed) {
  files_.restock();
  EXPECT_TRUE(names_in(folder_.path())->empty());
  const Result<Fd> file = files_.open(at("a"));
  ASSERT_TRUE(file);
  ASSERT_EQ(::write(file->get(), "said", 4), 4);
  EXPECT_EQ(*names_in(folder_.path()), std::vector<std::string>{"a"});
  EXPECT_EQ(*read_file(at("a"), 16), "said");
  struct stat made{};
  ASSERT_EQ(::stat(at("a").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777, 0600U);
  EXPECT_EQ(made.st_nlink, 1U);
}

TEST_F(Nameless, AFileThatIsThereIsOpenedAsItIs) {
  ASSERT_TRUE(create_file(at("a"), "before", 0600));
  files_.restock();
  const Result<Fd> file = files_.open(at("a"));
  ASSERT_TRUE(file);
  ASSERT_EQ(::write(file->get(), "B", 1), 1);
  EXPECT_EQ(*read_file(at("a"), 16), "Before");
}

TEST_F(Nameless, WithoutASpareOneAFileIsMade) {
  for (const char* name : {"a", "b"}) ASSERT_TRUE(files_.open(at(name)));
  EXPECT_EQ(names_in(folder_.path())->size(), 2U);
}

TEST_F(Nameless, EachIsGivenOutOnce) {
  files_.restock();
  for (int i = 0; i < 20; ++i) {
    const Result<Fd> file = files_.open(at(std::to_string(i)));
    ASSERT_TRUE(file);
    const std::string text = std::to_string(i);
    ASSERT_EQ(::write(file->get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    if (i == 10) files_.restock();
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(*read_file(at(std::to_string(i)), 16), std::to_string(i));
}

TEST_F(Nameless, AFolderThatIsGoneIsToldWithThePath) {
  SpareFiles nowhere{at("none")};
  nowhere.restock();
  const Result<Fd> file = nowhere.open(at("none/a"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::io_failed);
  EXPECT_NE(file.error().message.find("none/a"), std::string::npos);
}

}  // namespace
}  // namespace berth
