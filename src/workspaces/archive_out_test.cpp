#include "workspaces/archive_out.hpp"

#include "support/archive_fixture.hpp"
#include "workspaces/archive_in.hpp"

#include <random>

namespace berth::workspaces {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ArchiveOutTest : public tests::ArchiveFixture {};

TEST_F(ArchiveOutTest, ATreeComesBackAsItWentOut) {
  fs::create_directories(in("work/empty"));
  fs::create_directories(in("work/deep/er/est"));
  put(in("work/deep/er/file"), std::string(100'000, 'x') + "end");
  put(in("work/nothing"), "");
  put(in("work/tool"), "#!/bin/sh\n");
  fs::permissions(in("work/tool"), fs::perms{0751});
  put(in("work/new\nline"), "1");
  put(in("work/bad\xff"), "2");
  put(in("work/\xc3\xa4"), "3");
  put(in("work/" + std::string(255, 'n')), "4");
  fs::create_symlink("deep/er/file", in("work/link"));
  fs::create_symlink("../nothing", in("work/deep/bad\xfe"));
  fs::permissions(in("work/deep/er"), fs::perms{0550});
  const timespec then{.tv_sec = 1'000'000'000, .tv_nsec = 123'456'789};
  const timespec times[] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, in("work/deep/er").c_str(), times, 0), 0);

  std::string tar;
  const auto packed = archive_out(open(root_), "work", into(tar));
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  const auto before = described(in("work"));
  EXPECT_EQ(packed->entries, before.size());
  const std::string copy = folder_.file("copy");
  fs::create_directory(copy);
  const auto unpacked = archive_in(open(copy), "a/b", pieces_of(tar));
  ASSERT_TRUE(unpacked.has_value()) << unpacked.error().message;
  EXPECT_EQ(unpacked->entries, packed->entries);
  EXPECT_EQ(unpacked->bytes, packed->bytes);
  EXPECT_EQ(described(copy + "/a/b"), before);
  EXPECT_EQ(described(copy).size(), before.size() + 2) << "no draft is left";
  fs::permissions(in("work/deep/er"), fs::perms{0700});
  fs::permissions(copy + "/a/b/deep/er", fs::perms{0700});
}

TEST_F(ArchiveOutTest, ABigFileComesBackAsItWentOutInSmallPieces) {
  constexpr std::size_t block = 1 << 20;
  constexpr int blocks = 101;
  std::mt19937_64 random{7};
  std::vector<std::uint64_t> words(block / sizeof(std::uint64_t));
  {
    std::ofstream file{in("big"), std::ios::binary};
    for (int i = 0; i < blocks; ++i) {
      for (std::uint64_t& word : words) word = random();
      file.write(reinterpret_cast<const char*>(words.data()), block);
    }
  }
  // The archive passes through a file, as it would through a socket.
  std::uint64_t seen = 0;
  std::size_t piece_max = 0;
  {
    std::ofstream tar{folder_.file("tar"), std::ios::binary};
    const ByteSink sink = [&](std::string_view piece) {
      piece_max = std::max(piece_max, piece.size());
      tar.write(piece.data(), static_cast<std::streamsize>(piece.size()));
      return Result<>{};
    };
    const ProgressSink progress = [&](const Progress& now) { seen = now.bytes; };
    const auto packed = archive_out(open(root_), "big", sink, {.progress = progress});
    ASSERT_TRUE(packed.has_value()) << packed.error().message;
    EXPECT_EQ(packed->bytes, block * blocks);
  }
  EXPECT_LE(piece_max, block);
  EXPECT_GT(seen, block * (blocks - 5));
  std::ifstream tar{folder_.file("tar"), std::ios::binary};
  std::string piece;
  const ByteSource source = [&]() -> Result<std::string_view> {
    piece.resize(block);
    tar.read(piece.data(), block);
    piece.resize(static_cast<std::size_t>(tar.gcount()));
    return piece;
  };
  ASSERT_TRUE(archive_in(open(root_), "copy", source).has_value());
  std::ifstream one{in("big"), std::ios::binary};
  std::ifstream two{in("copy/big"), std::ios::binary};
  std::string a(block, '\0');
  std::string b(block, '\0');
  for (int i = 0; i < blocks; ++i) {
    one.read(a.data(), block);
    two.read(b.data(), block);
    ASSERT_TRUE(one && two && a == b) << "block " << i;
  }
  EXPECT_EQ(two.peek(), std::char_traits<char>::eof());
}

TEST_F(ArchiveOutTest, WhatMustNotLeaveStopsTheArchiveBeforeItsFirstByte) {
  put(in("good"), "x");
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  std::string tar;
  const auto packed = archive_out(open(root_), "", into(tar));
  EXPECT_EQ(packed.error().code, Errc::path_refused);
  EXPECT_THAT(packed.error().message, HasSubstr("'pipe': is a pipe"));
  EXPECT_THAT(tar, IsEmpty());
}

TEST_F(ArchiveOutTest, WhatMustNotLeaveIsLeftOutAndNamedWhereThatIsAsked) {
  put(in("good"), "x");
  fs::create_directory(in("d"));
  ASSERT_EQ(::mkfifo(in("d/pipe").c_str(), 0600), 0);
  fs::create_hard_link(outside_ + "/secret", in("linked"));
  put(in("sparse"), "");
  fs::resize_file(in("sparse"), 1ULL << 40);
  std::string tar;
  const auto packed = archive_out(open(root_), "", into(tar), {.unfit = Unfit::left_out});
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  EXPECT_EQ(packed->left_out_count, 3U);
  std::vector<std::string> names;
  for (const LeftOut& thing : packed->left_out) names.push_back(thing.path);
  EXPECT_THAT(names, UnorderedElementsAre("d/pipe", "linked", "sparse"));
  ASSERT_TRUE(archive_in(open(root_), "copy", pieces_of(tar)).has_value());
  EXPECT_THAT(described(in("copy")), SizeIs(2));
  fs::remove(in("sparse"));
}

TEST_F(ArchiveOutTest, AFileWithTwoNamesGoesUnderBothWhereAllNamesLieInTheTree) {
  put(in("one"), "text");
  fs::create_hard_link(in("one"), in("two"));
  std::string tar;
  EXPECT_EQ(archive_out(open(root_), "", into(tar)).error().code, Errc::path_refused);
  const Confined whole{Fd{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)},
                       Mounts::refused,
                       {},
                       {},
                       HardLinks::taken};
  const auto packed = archive_out(whole, "", into(tar));
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  ASSERT_TRUE(archive_in(open(root_), "copy", pieces_of(tar)).has_value());
  EXPECT_EQ(content(in("copy/one")), "text");
  EXPECT_EQ(content(in("copy/two")), "text");
}

TEST_F(ArchiveOutTest, OfAFileThatGrowsWhileItIsPackedGoesWhatItHad) {
  put(in("log"), std::string(1'000'000, 'x'));
  std::string tar;
  const auto packed = archive_out(open(root_), "", [&](std::string_view piece) {
    tar += piece;
    std::ofstream{in("log"), std::ios::app} << "more";
    return Result<>{};
  });
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  ASSERT_TRUE(archive_in(open(root_), "copy", pieces_of(tar)).has_value());
  EXPECT_EQ(content(in("copy/log")), std::string(1'000'000, 'x'));
}

TEST_F(ArchiveOutTest, AFileThatChangesWhileItIsPackedLeavesNoWholeArchive) {
  put(in("file"), std::string(1'000'000, 'x'));
  std::string tar;
  const auto packed = archive_out(open(root_), "", [&](std::string_view piece) {
    tar += piece;
    fs::resize_file(in("file"), 100);
    return Result<>{};
  });
  EXPECT_EQ(packed.error().code, Errc::conflict);
  EXPECT_EQ(archive_in(open(root_), "copy", pieces_of(tar)).error().code, Errc::unprocessable);
}

TEST_F(ArchiveOutTest, ASinkThatFailsEndsTheArchive) {
  put(in("file"), std::string(1'000'000, 'x'));
  int calls = 0;
  const auto packed = archive_out(open(root_), "", [&](std::string_view) -> Result<> {
    ++calls;
    return fail(Errc::cancelled, "the client left");
  });
  EXPECT_EQ(packed.error().code, Errc::cancelled);
  EXPECT_EQ(calls, 1);
}

TEST_F(ArchiveOutTest, ADeepOrLargeTreeIsRefused) {
  Fd at{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    at = Fd{::openat(at.get(), "d", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  }
  std::string tar;
  EXPECT_THAT(archive_out(open(root_), "", into(tar)).error().message, HasSubstr("deeper than"));
  EXPECT_THAT(archive_out(open(root_, {.entries_max = 50}), "", into(tar)).error().message,
              HasSubstr("more than 50 entries"));
  fs::remove_all(in("d"));
  put(in("file"), "12345");
  EXPECT_THAT(archive_out(open(root_, {.bytes_max = 4}), "", into(tar)).error().message,
              HasSubstr("more than 4 bytes"));
  EXPECT_EQ(archive_out(open(root_), "nothing", into(tar)).error().code, Errc::file_not_found);
  EXPECT_EQ(archive_out(open(root_), "../outside", into(tar)).error().code, Errc::path_refused);
  EXPECT_THAT(tar, IsEmpty());
}

TEST_F(ArchiveOutTest, DraftsOfOtherTransfersAreNoPartOfATree) {
  put(in(draft_name()), "half");
  const std::string unpacking = in(draft_name());
  fs::create_directory(unpacking);
  put(unpacking + "/half", "half");
  put(in("file"), "x");
  std::string tar;
  const auto packed = archive_out(open(root_), "", into(tar));
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(packed->entries, 1U);
}

}  // namespace
}  // namespace berth::workspaces
