#include "core/output/run_summary.hpp"

#include "base/random.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

TEST(RunTitle, IsTheCommandAsOneWouldTypeIt) {
  EXPECT_EQ(title_of({"echo", "two words", "it's", ""}), R"(echo 'two words' 'it'\''s' '')");
  EXPECT_EQ(title_of({"sh", "-c", "echo a\nmake b"}), "echo a make b");
  EXPECT_EQ(title_of({}), "");
}

TEST(RunTitle, IsShortWhateverTheCommandIs) {
  const std::string title = title_of({"cat", std::string(1 << 20, 'x'), "more"});
  EXPECT_LT(title.size(), 200U);
  EXPECT_TRUE(title.ends_with("…"));
  EXPECT_LT(title_of(std::vector<std::string>(100'000, "ä")).size(), 200U);
}

TEST(RunSummary, ShortensWhatWentWrong) {
  SeededRandom random{1};
  const Time now{1};
  ListedRun run{.id = RunId::make(random, now), .company_id = CompanyId::make(random, now)};
  run.error = std::string(10'000, 'e');
  const RunSummary summary = summary_of(std::move(run));
  EXPECT_LT(summary.error->size(), 250U);
  EXPECT_EQ(summary.title, "");
}

TEST(RunSummary, NamesWhatAnAgentWasAsked) {
  SeededRandom random{1};
  const Time now{1};
  ListedRun run{.id = RunId::make(random, now), .company_id = CompanyId::make(random, now)};
  run.command = RunCommand{.argv = {"claude", "--print"}, .prompt_excerpt = "Mend the roof"};
  EXPECT_EQ(summary_of(std::move(run)).title, "Mend the roof");
}

}  // namespace
}  // namespace berth::core
