#include "http/routes/stdin_queue.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

constexpr std::size_t window = core::attach_stdin_window;

TEST(StdinQueue, CountsAnEmptyPieceForWhatKeepingItCosts) {
  StdinQueue queue;
  std::size_t kept = 0;
  while (kept <= window && queue.keep(std::string{})) ++kept;
  EXPECT_EQ(kept, window / 64);
  for (std::size_t i = 0; i < kept; ++i) {
    EXPECT_EQ(StdinQueue::bytes_of(queue.take()), 0U);
    queue.settle();
  }
  EXPECT_TRUE(queue.keep(std::string(window, 'x'))) << "what was settled counts no more";
}

TEST(StdinQueue, KeepsOneEndHoweverManyAreSent) {
  StdinQueue queue;
  ASSERT_TRUE(queue.keep(std::string{"last words"}));
  for (int i = 0; i < 1'000'000; ++i) ASSERT_TRUE(queue.keep(places::EndOfInput{}));
  EXPECT_EQ(StdinQueue::bytes_of(queue.take()), 10U);
  queue.settle();
  EXPECT_TRUE(std::holds_alternative<places::EndOfInput>(queue.take()));
  queue.settle();
  EXPECT_TRUE(queue.empty());
}

TEST(StdinQueue, TakesAnEndThatWasRefusedOnceThereIsRoom) {
  StdinQueue queue;
  ASSERT_TRUE(queue.keep(std::string(window, 'x')));
  EXPECT_FALSE(queue.keep(places::EndOfInput{}));
  queue.take();
  EXPECT_FALSE(queue.keep(places::EndOfInput{})) << "it counts until it has been delivered";
  queue.settle();
  EXPECT_TRUE(queue.keep(places::EndOfInput{}));
}

}  // namespace
}  // namespace berth::http
