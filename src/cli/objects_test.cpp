#include "cli/objects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

const bj::array objects = parse_json(R"([
  {"id": "0190aaaa-0000-7000-8000-000000000001", "name": "build"},
  {"id": "0190aabb-0000-7000-8000-000000000002", "name": "Local"},
  {"id": "0190ccdd-0000-7000-8000-000000000003", "name": "twin"},
  {"id": "0190ccee-0000-7000-8000-000000000004", "name": "twin"},
  {"id": "f190ccee-0000-7000-8000-000000000005", "name": "0190aabb", "key": "by-key"}
])")
                              .value()
                              .get_array();

std::string chosen(std::string_view named) {
  const auto object = choose(objects, named, environment_kind());
  return object ? text_of(*object, "id").substr(34) : std::string{name_of(object.error().code)};
}

TEST(Choose, FindsByIdNameKeyAndStartOfId) {
  EXPECT_EQ(chosen("0190aaaa-0000-7000-8000-000000000001"), "01");
  EXPECT_EQ(chosen("Local"), "02");
  EXPECT_EQ(chosen("by-key"), "05");
  EXPECT_EQ(chosen("0190aaa"), "01");
}

TEST(Choose, ANameWinsOverTheStartOfAnotherId) {
  EXPECT_EQ(chosen("0190aabb"), "05");
}

TEST(Choose, SeveralThatFitAreListed) {
  const auto object = choose(objects, "twin", environment_kind());
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, Errc::conflict);
  EXPECT_EQ(object.error().facts.at("candidates").size(), 2u);
  EXPECT_EQ(chosen("0190"), "conflict");
}

TEST(Choose, NothingThatFitsIsNotFound) {
  EXPECT_EQ(chosen("local"), "environment_not_found");
  EXPECT_EQ(chosen(""), "environment_not_found");
  const auto object = choose({}, "x", secret_kind());
  EXPECT_EQ(object.error().code, Errc::secret_not_found);
  EXPECT_THAT(object.error().remedy, testing::HasSubstr("berth secret list"));
}

}  // namespace
}  // namespace berth::cli
