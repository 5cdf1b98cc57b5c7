#include "base/secret.hpp"

#include "base/log.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <type_traits>

namespace berth {
namespace {

template <class T>
concept Streamable = requires(std::ostream& out, const T& value) { out << value; };

static_assert(!std::is_copy_constructible_v<Secret> && !std::is_copy_assignable_v<Secret>,
              "a copy is made by clone(), where a reader sees it");
static_assert(!std::is_convertible_v<std::string_view, Secret>,
              "a text does not become a secret by accident");
static_assert(!std::is_convertible_v<Secret, std::string_view> &&
              !std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_constructible_v<log::Value, Secret> &&
              !std::is_constructible_v<log::Value, const Secret&>);
static_assert(!Streamable<Secret>);

TEST(Secret, RevealsWhatItWasGivenIncludingNulBytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(Secret{"a\0b"sv}.reveal(), "a\0b"sv);
  EXPECT_TRUE(Secret{}.empty());
  EXPECT_EQ(Secret{}.reveal(), "");
}

TEST(Secret, LeavesNothingBehindWhenMoved) {
  Secret first{"hunter2"};
  const char* bytes = first.reveal().data();
  const Secret second{std::move(first)};
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): the point
  EXPECT_EQ(second.reveal().data(), bytes) << "a move must not copy the bytes";
}

TEST(Secret, TakesTheValueOfTheOneAssignedToIt) {
  Secret held{"old"};
  held = Secret{"new"};
  EXPECT_EQ(held.reveal(), "new");
  Secret& same = held;
  held = std::move(same);
  EXPECT_EQ(held.reveal(), "new");
}

TEST(Secret, CloneIsASecondBox) {
  const Secret first{"hunter2"};
  const Secret second = first.clone();
  EXPECT_EQ(second.reveal(), first.reveal());
  EXPECT_NE(second.reveal().data(), first.reveal().data());
}

}  // namespace
}  // namespace berth
