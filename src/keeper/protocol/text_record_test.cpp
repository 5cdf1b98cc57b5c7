#include "keeper/protocol/text_record.hpp"

#include "keeper/protocol/messages.hpp"

#include <gtest/gtest.h>

namespace berth::keeper {
namespace {

Ended some_end() {
  return {.exec_id = "a",
          .fingerprint = 0xffffffffffffffff,
          .outcome = Outcome::failed_to_start,
          .code = -1,
          .failed_step = Step::chdir,
          .message = "two\nlines \\ and a \\n",
          .started_us = -5};
}

TEST(TextRecord, ComesBackAsItWas) {
  const Result<Ended> read = from_text<Ended>(to_text(some_end()), "x");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(*read), to_text(some_end()));
  EXPECT_EQ(read->message, some_end().message);
  EXPECT_EQ(read->fingerprint, some_end().fingerprint);
}

TEST(TextRecord, CutAnywhereIsNotTakenForWhole) {
  const std::string text = to_text(some_end());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(from_text<Ended>(text.substr(0, size), "x")) << "after " << size << " bytes";
  }
}

TEST(TextRecord, SkipsWhatItDoesNotKnowAndRefusesWhatIsWrong) {
  EXPECT_TRUE(from_text<Ended>("color green\ncode 3\n.\n", "x"));
  EXPECT_EQ(from_text<Ended>("color green\ncode 3\n.\n", "x")->code, 3);
  EXPECT_FALSE(from_text<Ended>("code three\n.\n", "x"));
  EXPECT_FALSE(from_text<Ended>("outcome vanished\n.\n", "x"));
}

}  // namespace
}  // namespace berth::keeper
