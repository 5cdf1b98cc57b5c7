#include "core/page.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace berth::core {
namespace {

const std::string some_id = "0190b5d2-7c3e-7abc-8def-0123456789ab";

TEST(Cursor, IsReadBackAsTheKeyItWasWrittenFrom) {
  for (const std::int64_t ms :
       {std::int64_t{0}, std::int64_t{1'700'000'000'000}, std::int64_t{-5},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    const PageKey key{.at = Time{ms}, .id = some_id};
    EXPECT_EQ(parse_cursor(to_cursor(key)), key) << ms;
  }
}

TEST(Cursor, HoldsOnlyWhatAUrlCarriesUnchanged) {
  const std::string cursor = to_cursor({.at = Time{-5}, .id = some_id});
  EXPECT_EQ(cursor.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._~"),
            std::string::npos);
}

TEST(Cursor, RefusesWhatIsNone) {
  const std::string wrong[] = {"",
                               ".",
                               "1",
                               "1.",
                               "." + some_id,
                               "x." + some_id,
                               "1x." + some_id,
                               " 1." + some_id,
                               "+1." + some_id,
                               "1.5." + some_id,
                               "1." + some_id + "0",
                               "1." + some_id + " ",
                               "1." + std::string(36, '0'),
                               "99999999999999999999." + some_id,
                               "1' or 1=1 --." + some_id,
                               some_id};
  for (const std::string& cursor : wrong) {
    const Result<PageKey> key = parse_cursor(cursor);
    ASSERT_FALSE(key) << cursor;
    EXPECT_EQ(key.error().code, Errc::validation_failed);
    EXPECT_EQ(key.error().issues, (std::vector<Issue>{{"/after", "is not a page cursor"}}));
  }
}

TEST(Page, HasADefaultAndTwoLimits) {
  EXPECT_EQ(parse_page({}, {})->limit, 100);
  EXPECT_EQ(parse_page(1, {})->limit, 1);
  EXPECT_EQ(parse_page(1000, {})->limit, 1000);
  for (const std::int64_t limit :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1001},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    const Result<PageRequest> page = parse_page(limit, {});
    ASSERT_FALSE(page) << limit;
    EXPECT_EQ(page.error().message, "query parameter 'limit' must be from 1 to 1000");
  }
}

TEST(Page, StartsAfterItsCursor) {
  const PageKey key{.at = Time{7}, .id = some_id};
  EXPECT_EQ(parse_page({}, {})->after, std::nullopt);
  EXPECT_EQ(parse_page({}, to_cursor(key))->after, key);
  EXPECT_EQ(parse_page({}, "x").error().message, "query parameter 'after' is not a page cursor");
}

}  // namespace
}  // namespace berth::core
