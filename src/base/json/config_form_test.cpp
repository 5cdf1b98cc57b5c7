#include "base/json/config_form.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using testing::ElementsAre;

constexpr TextRule lower_case{.pattern = "^[a-z]*$",
                              .says = "must be lower case",
                              .wrong = [](std::string_view text) -> std::string_view {
                                const bool fits = std::ranges::all_of(
                                    text, [](char c) { return c >= 'a' && c <= 'z'; });
                                return fits ? "" : "must be lower case";
                              }};

BOOST_DEFINE_ENUM_CLASS(FormColour, red, green)

struct FormPart {
  std::optional<std::string> word;
  std::int64_t count = 3;

  static Notes<FormPart> notes() { return {{&FormPart::count, {.low = 1, .high = 5}}}; }
};
BOOST_DESCRIBE_STRUCT(FormPart, (), (word, count))

struct FormSample {
  std::string name;
  std::optional<double> share;
  std::vector<std::string> words;
  std::optional<FormPart> part;
  std::optional<FormColour> colour;
  std::optional<Secret> key;

  static Notes<FormSample> notes() {
    return {{&FormSample::name, {.title = "Name", .required = true, .rule = &lower_case}},
            {&FormSample::share, {.title = "Share", .unit = "%", .low = 0.01, .high = 100}},
            {&FormSample::words, {.rule = &lower_case, .wrong = "is not a list of words"}},
            {&FormSample::colour, {.usual = R"("red")"}}};
  }
};
BOOST_DESCRIBE_STRUCT(FormSample, (), (name, share, words, part, colour, key))

bj::object form_json(std::string_view text) {
  return parse_json(text)->as_object();
}

std::vector<std::string> form_issues(std::string_view text) {
  const auto read = read_config<FormSample>(
      form_json(text), {.unknown = UnknownKeys::refuse, .prefix = "/c", .range = RangeWords::both});
  std::vector<std::string> out;
  if (read) return out;
  for (const Issue& issue : read.error().issues) out.push_back(issue.path + " " + issue.message);
  return out;
}

TEST(ConfigForm, ReadsWhatIsGivenAndKeepsTheDefaultsOfTheRest) {
  const auto read = read_config<FormSample>(
      form_json(R"({"name": "a", "part": {"word": "x"}, "key": "k", "share": 0.01})"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "a");
  EXPECT_EQ(read->part->count, 3);
  EXPECT_EQ(read->part->word, "x");
  EXPECT_EQ(read->key->reveal(), "k");
  EXPECT_FALSE(read->colour);
}

TEST(ConfigForm, NamesEachWrongFieldByItsPointer) {
  EXPECT_THAT(form_issues("{}"), ElementsAre("/c/name is required"));
  EXPECT_THAT(form_issues(R"({"name": "A", "share": 101})"),
              ElementsAre("/c/name must be lower case", "/c/share must be from 0.01 to 100"));
  EXPECT_THAT(
      form_issues(R"({"name": "a", "part": {"count": 6, "more": 1}})"),
      ElementsAre("/c/part/more is not a known field", "/c/part/count must be from 1 to 5"));
  EXPECT_THAT(form_issues(R"({"name": "a", "colour": "blue"})"),
              ElementsAre("/c/colour is 'blue', expected one of red, green"));
}

TEST(ConfigForm, AFieldWithItsOwnMessageIsNamedOnce) {
  EXPECT_THAT(form_issues(R"({"name": "a", "words": ["b", 1]})"),
              ElementsAre("/c/words is not a list of words"));
  EXPECT_THAT(form_issues(R"({"name": "a", "words": ["b", "C", "D"]})"),
              ElementsAre("/c/words is not a list of words"));
}

TEST(ConfigForm, ASchemaHasTheSameRules) {
  const bj::object schema = config_schema<FormSample>(UnknownKeys::refuse);
  const bj::object& properties = schema.at("properties").as_object();
  EXPECT_EQ(schema.at("required"), bj::value(bj::array{"name"}));
  EXPECT_EQ(schema.at("additionalProperties"), bj::value(false));
  EXPECT_EQ(properties.at("name").at("pattern"), "^[a-z]*$");
  EXPECT_EQ(properties.at("words").at("items").at("pattern"), "^[a-z]*$");
  EXPECT_EQ(properties.at("share").at("title"), "Share (%)");
  EXPECT_EQ(properties.at("share").at("minimum"), bj::value(0.01));
  EXPECT_EQ(properties.at("part").at("properties").at("count").at("default"), bj::value(3));
  EXPECT_EQ(properties.at("part").at("additionalProperties"), bj::value(false));
  EXPECT_EQ(properties.at("colour").at("default"), "red");
  EXPECT_EQ(properties.at("key").at("format"), "secret-ref");
}

TEST(ConfigForm, TakesNullForAbsentAtAnyDepth) {
  EXPECT_EQ(without_nulls<FormSample>(
                form_json(R"({"name": " a ", "share": null, "part": {"word": null}, "x": null})")),
            form_json(R"({"name": " a ", "part": {}, "x": null})"));
}

TEST(ConfigForm, ReadsWhatPeopleWrite) {
  EXPECT_EQ(as_written<FormSample>(
                form_json(R"({"name": " a ", "part": {"word": " ", "count": " 4 "}})")),
            form_json(R"({"name": "a", "part": {"count": 4}})"));
  EXPECT_EQ(as_written<FormSample>(form_json(R"({"part": {"count": "4x"}})")),
            form_json(R"({"part": {"count": "4x"}})"));
}

}  // namespace
}  // namespace berth
