#include "snapshots/merge.hpp"

#include "snapshots/checkout.hpp"
#include "snapshots/git/pack_writer.hpp"
#include "snapshots/git/tree_builder.hpp"
#include "snapshots/snapshots_fixture.hpp"

#include <random>
#include <set>

namespace berth::snapshots {
namespace {

struct File {
  GitMode mode = GitMode::file;
  std::string content = {};
};
using Tree = std::map<std::string, File>;

// Trees that differ as those of people and agents do: text, binary files, renames, modes, links,
// deletions, and folders that become files.
class RandomTrees {
 public:
  explicit RandomTrees(unsigned seed) : random_(seed) {}

  Tree base() {
    Tree tree;
    const std::size_t files = 2 + random_() % 8;
    for (std::size_t i = 0; i < files; ++i) put(tree, fresh_path(), fresh_file());
    return tree;
  }
  Tree edited(Tree tree) {
    for (std::size_t edits = random_() % 5; edits > 0; --edits) edit(tree);
    return tree;
  }

 private:
  std::string fresh_path() {
    static const std::vector<std::string> folders{"", "", "a/", "b/", "a/c/", "deep/x/y/"};
    return folders[random_() % folders.size()] + "f" + std::to_string(random_() % 14);
  }
  File fresh_file() {
    const unsigned kind = random_() % 10;
    if (kind == 0) return {GitMode::link, "to/" + std::to_string(random_() % 9)};
    if (kind == 1) return {GitMode::file, std::string("\0bin", 4) + std::to_string(random_() % 99)};
    File file{kind == 2 ? GitMode::program : GitMode::file, {}};
    const std::size_t lines = 1 + random_() % 30;
    const unsigned theme = random_() % 50;
    for (std::size_t i = 0; i < lines; ++i) {
      file.content += "line " + std::to_string(theme) + " " + std::to_string(i) + "\n";
    }
    return file;
  }
  static bool fits(const Tree& tree, const std::string& path) {
    for (const auto& [other, file] : tree) {
      if (other.starts_with(path + "/") || path.starts_with(other + "/")) return false;
    }
    return true;
  }
  static void put(Tree& tree, const std::string& path, File file) {
    if (fits(tree, path)) tree[path] = std::move(file);
  }
  void edit(Tree& tree) {
    if (tree.empty()) return put(tree, fresh_path(), fresh_file());
    auto at = std::next(tree.begin(), static_cast<std::ptrdiff_t>(random_() % tree.size()));
    switch (random_() % 8) {
      case 0: tree.erase(at); break;
      case 1: put(tree, fresh_path(), fresh_file()); break;
      case 2: at->second = fresh_file(); break;
      case 3:
        if (at->second.mode != GitMode::link) {
          at->second.mode = at->second.mode == GitMode::file ? GitMode::program : GitMode::file;
        }
        break;
      case 4: {
        File file = at->second;
        tree.erase(at);
        put(tree, fresh_path(), std::move(file));
        break;
      }
      case 5: {
        const std::string path = at->first + "/inner";
        tree.erase(at);
        put(tree, path, fresh_file());
        break;
      }
      default: edit_line(at->second); break;
    }
  }
  void edit_line(File& file) {
    if (file.mode == GitMode::link) return;
    std::vector<std::string> lines;
    std::stringstream in{file.content};
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    if (lines.empty()) return;
    lines[random_() % lines.size()] = "changed " + std::to_string(random_() % 6);
    file.content.clear();
    for (const std::string& line : lines) file.content += line + "\n";
  }

  std::mt19937 random_;
};

class MergeTest : public SnapshotsTest {
 protected:
  ObjectId write_tree(PackWriter& pack, const Tree& tree) const {
    TreeBuilder builder{pack, {}};
    for (const auto& [path, file] : tree) {
      const ObjectId blob = *pack.add(ObjectType::blob, file.content);
      EXPECT_TRUE(builder.add(path, file.mode, blob).has_value());
    }
    return *builder.finish();
  }
  ObjectId tree_with(const Tree& tree) const {
    auto pack = PackWriter::in(repository());
    const ObjectId id = write_tree(*pack, tree);
    EXPECT_TRUE(pack->finish().has_value());
    return id;
  }
  MergeSides sides_of(const Tree& base, const Tree& ours, const Tree& theirs) const {
    return {.base = tree_with(base), .ours = tree_with(ours), .theirs = tree_with(theirs)};
  }
};

// Git in an ordinary clone is the judge: the same tree where its merge is clean, and conflicts in
// the same paths where it is not. BERTH_MERGE_ROUNDS raises the number of triples.
TEST_F(MergeTest, RandomTriplesAreMergedAsByGit) {
  const char* const given = std::getenv("BERTH_MERGE_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 1000;
  std::vector<MergeSides> triples;
  // One shell for all of the judge's work.
  std::string script = "export HOME=/nonexistent\n";
  auto pack = PackWriter::in(repository());
  SNAPSHOT_OK(pack);
  for (int i = 0; i < rounds; ++i) {
    RandomTrees random{static_cast<unsigned>(i)};
    const Tree tree = random.base();
    const MergeSides sides{.base = write_tree(*pack, tree),
                           .ours = write_tree(*pack, random.edited(tree)),
                           .theirs = write_tree(*pack, random.edited(tree))};
    triples.push_back(sides);
    // The commits of the same names as ours: git puts their ids into the names of files.
    const ObjectId base =
        *pack->add(ObjectType::commit, text_of({.tree = sides.base, .message = "base"}));
    const ObjectId ours = *pack->add(
        ObjectType::commit, text_of({.tree = sides.ours, .parents = {base}, .message = "ours"}));
    const ObjectId theirs =
        *pack->add(ObjectType::commit,
                   text_of({.tree = sides.theirs, .parents = {base}, .message = "theirs"}));
    script += "git merge-tree --write-tree --name-only --no-messages -z " + ours.hex() + " " +
              theirs.hex() + " > out." + std::to_string(i) + "; echo $? > status." +
              std::to_string(i) + "\n";
  }
  SNAPSHOT_OK(pack->finish());
  const std::string judge = home() + "/judge";
  git(home(), "init -q judge");
  std::ofstream{judge + "/.git/objects/info/alternates"} << repository().folder() << "/objects\n";
  write_in(judge, "script", script);
  git(judge, "version && sh script");
  int clean = 0;
  for (std::size_t i = 0; i < triples.size(); ++i) {
    const auto merge = merge_snapshots(repository(), triples[i]);
    SNAPSHOT_OK(merge);
    std::stringstream out{*read_file(judge + "/out." + std::to_string(i), 1 << 20)};
    std::string tree;
    std::getline(out, tree, '\0');
    std::set<std::string> conflicted;
    for (std::string path; std::getline(out, path, '\0');) conflicted.insert(path);
    ASSERT_EQ(std::set<std::string>(merge->conflicted.begin(), merge->conflicted.end()), conflicted)
        << "triple " << i;
    const std::string status = *read_file(judge + "/status." + std::to_string(i), 10);
    ASSERT_EQ(merge->clean, status == "0\n") << "triple " << i << ": " << status;
    if (!merge->clean) continue;
    ++clean;
    ASSERT_EQ(merge->tree.hex(), tree) << "triple " << i;
  }
  EXPECT_GT(clean, rounds / 4);
  EXPECT_LT(clean, rounds * 19 / 20);
}

TEST_F(MergeTest, ConflictsHaveTheirKind) {
  const std::string zero("\0a", 2);
  const Tree base{
      {"text", {.content = "1\n"}}, {"bin", {.content = zero}}, {"gone", {.content = "1\n"}}};
  const Tree ours{{"text", {.content = "2\n"}}, {"bin", {.content = zero + "b"}}};
  const Tree theirs{
      {"text", {.content = "3\n"}}, {"bin", {.content = zero + "c"}}, {"gone", {.content = "2\n"}}};
  const auto merge = merge_snapshots(repository(), sides_of(base, ours, theirs));
  SNAPSHOT_OK(merge);
  EXPECT_EQ(merge->conflicted, (std::vector<std::string>{"bin", "gone", "text"}));
  std::set<std::string> kinds;
  for (const Conflict& conflict : merge->conflicts) kinds.insert(conflict.kind);
  EXPECT_TRUE(kinds.contains("contents"));
  EXPECT_TRUE(kinds.contains("binary"));
  EXPECT_TRUE(kinds.contains("modify/delete"));
}

TEST_F(MergeTest, OneSideResolvesEveryConflictAndKeepsTheRest) {
  const Tree base{
      {"both", {.content = "1\n"}}, {"one", {.content = "1\n"}}, {"gone", {.content = "1\n"}}};
  const Tree ours{{"both", {.content = "2\n"}}, {"one", {.content = "1\n"}}};
  const Tree theirs{
      {"both", {.content = "3\n"}}, {"one", {.content = "4\n"}}, {"gone", {.content = "5\n"}}};
  const MergeSides sides = sides_of(base, ours, theirs);
  const auto merge = merge_snapshots(repository(), sides);
  SNAPSHOT_OK(merge);
  EXPECT_EQ(*resolve(repository(), sides, *merge, Side::ours),
            tree_with({{"both", {.content = "2\n"}}, {"one", {.content = "4\n"}}}));
  EXPECT_EQ(*resolve(repository(), sides, *merge, Side::theirs),
            tree_with({{"both", {.content = "3\n"}},
                       {"one", {.content = "4\n"}},
                       {"gone", {.content = "5\n"}}}));
}

TEST_F(MergeTest, AttributesOfTheTreeHaveNoEffect) {
  const Tree base{{"a", {.content = "1\n"}}, {".gitattributes", {.content = "* merge=union\n"}}};
  Tree ours = base;
  ours["a"].content = "2\n";
  Tree theirs = base;
  theirs["a"].content = "3\n";
  const auto merge = merge_snapshots(repository(), sides_of(base, ours, theirs));
  SNAPSHOT_OK(merge);
  EXPECT_FALSE(merge->clean);
}

}  // namespace
}  // namespace berth::snapshots
