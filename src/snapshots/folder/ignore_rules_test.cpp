#include "snapshots/folder/ignore_rules.hpp"

#include "snapshots/folder/wildmatch.hpp"
#include "snapshots/snapshots_fixture.hpp"

#include <random>

namespace berth::snapshots {
namespace {

TEST(WildmatchTest, FollowsGitOnItsOwnExamples) {
  struct Case {
    std::string_view pattern;
    std::string_view path;
    bool matches;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"foo", "foo", true},
           {"foo/*", "foo/a/b", false},
           {"foo/**", "foo/a/b", true},
           {"**/foo", "a/b/foo", true},
           {"**/foo", "foo", true},
           {"a/**/b", "a/b", true},
           {"a/**/b", "a/x/y/b", true},
           {"a**b", "a/b", false},
           {"[a-c]x", "bx", true},
           {"[!a-c]x", "bx", false},
           {"[[:digit:]]x", "7x", true},
           {"\\*", "*", true},
           {"\\*", "x", false},
           {"[", "[", false},
           {"?", "/", false},
           {"*.o", "a.o", true},
       }) {
    EXPECT_EQ(wildmatch(c.pattern, c.path), c.matches) << c.pattern << " " << c.path;
  }
}

TEST(WildmatchTest, ManyStarsTakeBoundedTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(wildmatch(pattern + "b", std::string(4000, 'a')));
}

class IgnoreRulesTest : public SnapshotsTest {};

// Every path of a tree with random ignore files is ignored exactly if git ignores it.
TEST_F(IgnoreRulesTest, RandomPatternsAreIgnoredAsByGit) {
  std::mt19937 random{20261118};
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[random() % from.size()];
  };
  const std::vector<std::string> names{"a", "b", "ab", "a.o", "b.o", "x", "#c", "!d", " e", "f "};
  const std::vector<std::string> parts{"a", "b", "*",   "**",  "?",           "[ab]", "[!a]", ".o",
                                       "/", "/", "a/",  "\\a", "[a-b]*",      "x",    "*.o",  "**/",
                                       "!", " ", "\\ ", "#",   "[[:alpha:]]", "[]",   "\\"};
  git(home(), "init -q judge");
  const std::string judge = home() + "/judge";
  for (int round = 0; round < 60; ++round) {
    for (const auto& entry : std::filesystem::directory_iterator{judge}) {
      if (entry.path().filename() != ".git") std::filesystem::remove_all(entry.path());
    }
    const std::vector<std::string> folders{"", "a/", "a/b/", "b/", "ab/x/", "x/a/b/"};
    std::string asked;
    for (const std::string& folder : folders) {
      for (int i = 0; i < 4; ++i) {
        const std::string path = folder + "z" + pick(names);
        write_in(judge, path, "");
        write_in(judge, folder + pick({"a.o", "ab.o", "bb", "c"}), "");
      }
    }
    for (const std::string& folder : {std::string{}, std::string{"a/"}, std::string{"x/"}}) {
      std::string lines;
      for (int i = 0; i < 4; ++i) {
        lines += random() % 4 == 0 ? "!" : "";
        for (unsigned parts_left = 1 + random() % 4; parts_left > 0; --parts_left) {
          lines += pick(parts);
        }
        lines += random() % 8 == 0 ? "  \n" : "\n";
      }
      write_in(judge, folder + ".gitignore", lines);
    }
    SnapshotOptions options;
    const auto taken = take_snapshot(repository(), judge, options);
    SNAPSHOT_OK(taken);
    std::set<std::string> ours;
    for (const ScannedEntry& entry : taken->entries) ours.insert(entry.path);
    std::set<std::string> theirs;
    std::stringstream listed{git(judge, "ls-files -z --others --exclude-standard")};
    for (std::string path; std::getline(listed, path, '\0');) theirs.insert(path);
    std::string rules;
    for (const char* file : {"/.gitignore", "/a/.gitignore", "/x/.gitignore"}) {
      rules += read_file(judge + file, 10'000).value_or("") + "--\n";
    }
    ASSERT_EQ(ours, theirs) << rules;
  }
}

}  // namespace
}  // namespace berth::snapshots
