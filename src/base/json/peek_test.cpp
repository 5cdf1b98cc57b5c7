#include "base/json/peek.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

struct Glimpse {
  std::optional<std::string> word;
  std::int64_t count = 7;
  std::vector<std::string> words;
};
BOOST_DESCRIBE_STRUCT(Glimpse, (), (word, count, words))

TEST(Peek, FindsAFieldOfItsType) {
  const bj::object object{{"a", "x"}, {"n", 3}, {"d", 1.5}, {"null", nullptr}, {"o", bj::object{}}};
  EXPECT_EQ(peek<std::string>(object, "a"), "x");
  EXPECT_EQ(peek<std::int64_t>(object, "n"), 3);
  EXPECT_EQ(peek<double>(object, "n"), 3.0);
  EXPECT_EQ(peek<double>(object, "d"), 1.5);
  EXPECT_TRUE(peek<bj::object>(object, "o"));
}

TEST(Peek, TakesEverythingElseForAbsent) {
  const bj::object object{{"a", "x"}, {"d", 1.5}, {"null", nullptr}};
  EXPECT_FALSE(peek<std::string>(object, "b"));
  EXPECT_FALSE(peek<std::string>(object, "d"));
  EXPECT_FALSE(peek<std::string>(object, "null"));
  EXPECT_FALSE(peek<std::int64_t>(object, "d"));
  EXPECT_FALSE(peek<bj::value>(object, "null"));
  EXPECT_FALSE(peek<std::string>(bj::value(3), "a"));
  EXPECT_FALSE(peek<std::string>(std::optional<bj::object>{}, "a"));
  EXPECT_FALSE(is_true_in({{"one", 1}}, "one"));
}

TEST(ReadLoosely, KeepsTheDefaultOfWhatDoesNotFit) {
  const auto read = read_loosely<Glimpse>(
      bj::object{{"word", 1}, {"count", "2"}, {"words", bj::array{"a", 1}}, {"more", true}});
  EXPECT_FALSE(read.word);
  EXPECT_EQ(read.count, 7);
  EXPECT_TRUE(read.words.empty());
  EXPECT_EQ(read_loosely<Glimpse>(bj::object{{"word", "w"}}).word, "w");
}

}  // namespace
}  // namespace berth
