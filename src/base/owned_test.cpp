#include "base/owned.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

namespace berth {
namespace {

// A resource whose disposals can be counted. Its raw form is a string, so that an incomplete move
// is visible.
struct NoteKind {
  using Raw = std::string;
  static Raw none() { return {}; }
  static void dispose(const Raw& raw) noexcept { disposed.push_back(raw); }
  static inline std::vector<std::string> disposed;
};
using Note = Owned<NoteKind>;
using Disposed = std::vector<std::string>;

static_assert(!std::is_copy_constructible_v<Note> && !std::is_copy_assignable_v<Note>);
static_assert(std::is_nothrow_move_constructible_v<Note>);

class OwnedTest : public testing::Test {
 protected:
  void SetUp() override { NoteKind::disposed.clear(); }
};

TEST_F(OwnedTest, DisposesOfItsResourceOnce) {
  {
    const Note note{"a"};
  }
  EXPECT_EQ(NoteKind::disposed, Disposed{"a"});
}

TEST_F(OwnedTest, DisposesOfNothingWhenItHoldsNothing) {
  {
    const Note note;
  }
  EXPECT_TRUE(NoteKind::disposed.empty());
}

TEST_F(OwnedTest, MovesItsResourceToTheNewHolder) {
  {
    Note first{"a"};
    const Note second{std::move(first)};
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the point
    EXPECT_EQ(second.get(), "a");
    EXPECT_TRUE(NoteKind::disposed.empty());
  }
  EXPECT_EQ(NoteKind::disposed, Disposed{"a"});
}

TEST_F(OwnedTest, DisposesOfTheOldResourceWhenItTakesAnother) {
  Note note{"old"};
  note = Note{"new"};
  EXPECT_EQ(NoteKind::disposed, Disposed{"old"});
  EXPECT_EQ(note.get(), "new");
}

TEST_F(OwnedTest, KeepsItsResourceWhenMovedIntoItself) {
  Note note{"a"};
  Note& same = note;
  note = std::move(same);
  EXPECT_EQ(note.get(), "a");
  EXPECT_TRUE(NoteKind::disposed.empty());
}

TEST_F(OwnedTest, DisposesOfNothingAfterRelease) {
  {
    Note note{"a"};
    EXPECT_EQ(note.release(), "a");
    EXPECT_FALSE(note);
  }
  EXPECT_TRUE(NoteKind::disposed.empty());
}

TEST(Fd, IsClosedWhenItsHolderGoes) {
  int raw = -1;
  {
    const Fd fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    ASSERT_TRUE(fd);
    raw = fd.get();
    EXPECT_NE(::fcntl(raw, F_GETFD), -1);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

TEST(Fd, OwnsStandardInputToo) {
  // 0 is a descriptor, not "nothing".
  Fd fd{0};
  EXPECT_TRUE(fd);
  EXPECT_EQ(fd.release(), 0);
}

}  // namespace
}  // namespace berth
