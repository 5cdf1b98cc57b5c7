#include "cli/print/table.hpp"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("Zürich"), 6u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("東京"), 4u);
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
  EXPECT_EQ(display_width("\xe6\x9d"), 2u) << "a character that is cut off";
}

TEST(Printable, TakesTheSteeringOutOfNames) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(printable("a\nb\tc\r"), "a b c?");
  EXPECT_EQ(printable("abc\u202edef"), "abc?def");
  EXPECT_EQ(printable("a\u200bb\u00adc\ufeffd\u2028e\U000e0041"), "a?b?c?d?e?");
  EXPECT_EQ(printable("\xff"), "?");
  EXPECT_EQ(printable("Zürich 東京"), "Zürich 東京");
}

TEST(Clipped, NeverCutsACharacter) {
  EXPECT_EQ(clipped("Zürich", 6), "Zürich");
  EXPECT_EQ(clipped("Zürich", 3), "Zü…");
  EXPECT_EQ(clipped("東京都", 4), "東…");
  EXPECT_EQ(clipped("abc", 1), "…");
  EXPECT_EQ(clipped("abc", 0), "");
}

TEST(RenderTable, AlignsByWidthAndLeavesNoTrailingSpace) {
  const std::string text = render_table(
      {"NAME", "STATE"}, {{{"東京"}, {"ok"}}, {{"Zürich"}, {""}}, {{"x"}, {"y"}}}, {.columns = 0});
  EXPECT_EQ(text, "NAME    STATE\n東京    ok\nZürich\nx       y\n");
}

TEST(RenderTable, NarrowsTheWidestColumnToFitTheTerminal) {
  const std::string text =
      render_table({"ID", "TEXT"}, {{{"12345678"}, {std::string(80, 'x')}}}, {.columns = 30});
  EXPECT_EQ(text, "ID        TEXT\n12345678  " + std::string(19, 'x') + "…\n");
}

TEST(RenderTable, CutsNoColumnThatMustStayWhole) {
  const std::string text =
      render_table({"ID", "TEXT"}, {{{std::string(30, 'i')}, {std::string(20, 'x')}}},
                   {.columns = 42, .whole = 1});
  EXPECT_EQ(text, "ID" + std::string(30, ' ') + "TEXT\n" + std::string(30, 'i') + "  " +
                      std::string(9, 'x') + "…\n");
}

TEST(RenderTable, PaintsOnlyWhenAskedTo) {
  const std::vector<std::vector<Cell>> rows = {{{"a", Paint::red}}};
  EXPECT_EQ(render_table({"T"}, rows, {}), "T\na\n");
  EXPECT_EQ(render_table({"T"}, rows, {.colour = true}), "\x1b[1mT\x1b[0m\n\x1b[31ma\x1b[0m\n");
}

TEST(RenderTable, ARowThatIsTooShortIsFilled) {
  EXPECT_EQ(render_table({"A", "B"}, {{{"1"}}}, {}), "A  B\n1\n");
}

TEST(RelativeTime, SaysHowLongAgo) {
  const Time now{1'000'000'000'000};
  const auto ago = [&](std::int64_t seconds) { return relative_time(now + -seconds * 1000, now); };
  EXPECT_EQ(ago(0), "just now");
  EXPECT_EQ(ago(59), "59 s ago");
  EXPECT_EQ(ago(60), "1 min ago");
  EXPECT_EQ(ago(3'600), "1 hour ago");
  EXPECT_EQ(ago(86'400 * 3), "3 days ago");
  EXPECT_EQ(ago(86'400 * 800), "2 years ago");
  EXPECT_EQ(ago(-7'200), "in 2 hours");
}

}  // namespace
}  // namespace berth::cli
