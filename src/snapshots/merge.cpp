#include "snapshots/merge.hpp"

#include "base/text.hpp"
#include "snapshots/checkout.hpp"
#include "snapshots/git/loose_object.hpp"
#include "snapshots/git/pack_writer.hpp"
#include "snapshots/git/tree_builder.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace berth::snapshots {
namespace {

constexpr std::chrono::minutes merge_time{10};
constexpr std::size_t merge_bytes_max = 256 << 20;
constexpr std::string_view conflict_prefix = "CONFLICT (";

// Git of Debian 12 finds the base of a merge in the history alone, so the sides get one.
Result<std::pair<ObjectId, ObjectId>> make_history(const Repository& repository,
                                                   const MergeSides& trees) {
  const auto write = [&repository](const CommitText& commit) {
    return write_loose(repository, ObjectType::commit, text_of(commit));
  };
  BERTH_TRY(const ObjectId base, write({.tree = trees.base, .message = "base"}));
  BERTH_TRY(const ObjectId ours, write({.tree = trees.ours, .parents = {base}, .message = "ours"}));
  BERTH_TRY(const ObjectId theirs,
            write({.tree = trees.theirs, .parents = {base}, .message = "theirs"}));
  return std::pair{ours, theirs};
}

// What `git merge-tree -z` writes: the tree; then "<mode> <id> <stage>\t<path>" for each side of a
// conflict; then an empty field; then for each message the number of its paths, the paths, its
// kind and its text.
class MergeOutput {
 public:
  explicit MergeOutput(std::string_view text) : rest_(text) {}

  Result<Merge> parse() {
    Merge merge;
    const auto tree = ObjectId::from_hex(next());
    if (!tree) return malformed();
    merge.tree = *tree;
    std::set<std::string> paths;
    while (!rest_.empty()) {
      const std::string_view stage = next();
      if (stage.empty()) break;
      const std::size_t tab = stage.find('\t');
      if (tab == std::string_view::npos) return malformed();
      paths.emplace(stage.substr(tab + 1));
    }
    while (!rest_.empty()) BERTH_DO(parse_message(merge));
    merge.conflicted.assign(paths.begin(), paths.end());
    return merge;
  }

 private:
  std::string_view next() {
    const std::string_view field = rest_.substr(0, rest_.find('\0'));
    rest_.remove_prefix(std::min(field.size() + 1, rest_.size()));
    return field;
  }

  static std::unexpected<Error> malformed() {
    return fail(Errc::git_failed, "git merge-tree: wrote something that is not a merge");
  }

  Result<> parse_message(Merge& merge) {
    const std::string_view number = next();
    std::size_t count = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
    if (error != std::errc{} || end != number.data() + number.size()) return malformed();
    Conflict conflict;
    for (; count > 0 && !rest_.empty(); --count) conflict.paths.emplace_back(next());
    const std::string_view kind = next();
    std::string_view text = next();
    if (text.ends_with('\n')) text.remove_suffix(1);
    conflict.message = as_utf8(text);
    if (!kind.starts_with(conflict_prefix)) return {};  // "Auto-merging"
    conflict.kind = kind.substr(conflict_prefix.size());
    if (conflict.kind.ends_with(')')) conflict.kind.pop_back();
    merge.conflicts.push_back(std::move(conflict));
    return {};
  }

  std::string_view rest_;
};

using Files = std::map<std::string, TreeEntry>;

Result<Files> files_of(const Repository& repository, const ObjectId& tree) {
  BERTH_TRY(std::vector<TreeEntry> entries,
            list_tree(repository, tree, CheckoutLimits{}.files_max));
  Files files;
  for (TreeEntry& entry : entries) {
    std::string path = entry.path;
    files.emplace(std::move(path), std::move(entry));
  }
  return files;
}

Result<ObjectId> write_files(const Repository& repository, const Files& files) {
  std::vector<TreeEntry> entries;
  for (const auto& [path, entry] : files) entries.push_back(entry);
  if (auto checked = check_tree(entries, {}); !checked) {
    return fail(Errc::merge_conflict, "one side alone is not a tree: " + checked.error().message,
                "resolve the conflict by hand, with markers");
  }
  BERTH_TRY(PackWriter pack, PackWriter::in(repository));
  TreeBuilder builder{pack, {}};
  for (const TreeEntry& entry : entries) BERTH_DO(builder.add(entry.path, entry.mode, entry.id));
  BERTH_TRY(const ObjectId tree, builder.finish());
  BERTH_DO(pack.finish());
  return tree;
}

std::set<std::string> disputed(const Merge& merge) {
  std::set<std::string> paths(merge.conflicted.begin(), merge.conflicted.end());
  for (const Conflict& conflict : merge.conflicts) {
    paths.insert(conflict.paths.begin(), conflict.paths.end());
  }
  return paths;
}

}  // namespace

Result<Merge> merge_snapshots(const Repository& repository, const MergeSides& sides) {
  BERTH_TRY(const auto trees, repository.trees_of({sides.base, sides.ours, sides.theirs}));
  BERTH_TRY(const auto commits, make_history(repository, {trees[0], trees[1], trees[2]}));
  std::string text;
  BERTH_TRY(
      const GitEnd end,
      repository.run({.arguments = {"merge-tree", "--write-tree", "-z", "--messages",
                                    commits.first.hex(), commits.second.hex()},
                      .output =
                          [&text](std::string_view piece) {
                            text += piece;
                            return Result<>{};
                          },
                      .accepted = {0, 1},
                      .limits = {.time_max = merge_time, .output_bytes_max = merge_bytes_max}}));
  BERTH_TRY(Merge merge, MergeOutput{text}.parse());
  // The status decides: git also mentions conflicts that it could resolve.
  merge.clean = end.status == 0;
  if (merge.clean) merge.conflicts.clear();
  return merge;
}

Result<ObjectId> resolve(const Repository& repository, const MergeSides& sides, const Merge& merge,
                         Side side) {
  BERTH_TRY(Files files, files_of(repository, merge.tree));
  BERTH_TRY(const Files chosen,
            files_of(repository, side == Side::ours ? sides.ours : sides.theirs));
  for (const std::string& path : disputed(merge)) {
    files.erase(path);
    if (const auto at = chosen.find(path); at != chosen.end()) files.insert(*at);
  }
  return write_files(repository, files);
}

Result<ObjectId> with_their_binaries(const Repository& repository, const MergeSides& sides,
                                     const Merge& merge) {
  BERTH_TRY(Files files, files_of(repository, merge.tree));
  BERTH_TRY(const Files theirs, files_of(repository, sides.theirs));
  for (const Conflict& conflict : merge.conflicts) {
    if (conflict.kind != "binary") continue;
    for (const std::string& path : conflict.paths) {
      const auto at = theirs.find(path);
      if (at == theirs.end()) continue;
      TreeEntry copy = at->second;
      copy.path += ".theirs";
      std::string name = copy.path;
      files.try_emplace(std::move(name), std::move(copy));
    }
  }
  return write_files(repository, files);
}

}  // namespace berth::snapshots
