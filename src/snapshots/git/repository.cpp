#include "snapshots/git/repository.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "base/remove_tree.hpp"
#include "base/text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

namespace berth::snapshots {
namespace {

constexpr std::chrono::minutes long_work{30};
constexpr std::size_t refs_bytes_max = 64 << 20;

// A bare repository reads attributes from here alone. Nothing converts bytes, nothing is filtered,
// and diff and merge decide by the content what is text.
constexpr std::string_view attributes =
    "* -text -eol -ident -filter -working-tree-encoding -export-subst -export-ignore "
    "!diff !merge !conflict-marker-size !whitespace\n";
constexpr std::string_view format_name = "/berth-format";
constexpr std::string_view format_text = "1\n";

bool is_run_name(std::string_view run) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !run.empty() && run.size() <= 64 && std::ranges::all_of(run, fits);
}

std::string_view name_of_ref(RunRef what) {
  switch (what) {
    case RunRef::base: return "base";
    case RunRef::result: return "result";
    case RunRef::commits: return "commits";
  }
  return "base";
}

Result<> initialize(const GitProgram& git, const std::string& folder) {
  BERTH_DO(make_directories(folder, 0700));
  BERTH_DO(git.run(folder, {.arguments = {"init", "--quiet", "--bare",
                                          "--template=", "--initial-branch=main", folder}}));
  BERTH_DO(make_directories(folder + "/info", 0700));
  BERTH_DO(make_directories(folder + "/berth", 0700));
  BERTH_DO(replace_file(folder + "/info/attributes", attributes, 0600));
  return replace_file(folder + std::string{format_name}, format_text, 0600);
}

std::string random_suffix() {
  SystemRandom random;
  return random_base64url(random, 9);
}

}  // namespace

Result<Repository> Repository::create(GitProgram git, const std::string& folder) {
  if (auto found = open(git, folder)) return found;
  if (folder.empty() || folder.front() != '/') {
    return fail(Errc::bug, "repository " + in_quotes(folder) + ": the path must be absolute");
  }
  struct stat status{};
  if (::lstat(folder.c_str(), &status) == 0) return open(std::move(git), folder);
  BERTH_DO(git.check_version());
  const std::string draft = folder + ".new." + random_suffix();
  Result<> made = initialize(git, draft);
  if (made && ::rename(draft.c_str(), folder.c_str()) != 0 && errno != EEXIST &&
      errno != ENOTEMPTY) {
    made = io_failure("rename", draft, errno);
  }
  static_cast<void>(remove_tree(draft));
  if (!made) return std::unexpected(std::move(made).error());
  return open(std::move(git), folder);
}

Result<Repository> Repository::open(GitProgram git, const std::string& folder) {
  const auto format = read_file(folder + std::string{format_name}, 64);
  const auto rules = read_file(folder + "/info/attributes", 4096);
  if (!format || *format != format_text || !rules || *rules != attributes) {
    return fail(Errc::workspace_corrupt, folder + ": is not a workspace repository",
                "restore it from a backup, or delete the workspace");
  }
  return Repository{std::move(git), folder};
}

Result<> Repository::verify() const {
  const auto checked = run({.arguments = {"fsck", "--full", "--strict", "--no-dangling",
                                          "--no-progress", "--no-reflogs"},
                            .limits = {.time_max = long_work}});
  if (checked) return {};
  if (checked.error().code != Errc::git_failed) return std::unexpected(checked.error());
  return fail(Errc::workspace_corrupt, folder_ + ": " + checked.error().message,
              "restore it from a backup");
}

Result<std::string> Repository::ref_of(std::string_view run, RunRef what) {
  if (!is_run_name(run)) return fail(Errc::bad_request, "run " + in_quotes(run) + ": is not an id");
  return "refs/berth/runs/" + std::string{run} + "/" + std::string{name_of_ref(what)};
}

Result<std::optional<ObjectId>> Repository::ref(const std::string& name) const {
  // A loose ref is a file of 41 bytes, and reading it saves a process.
  if (const auto text = read_file(folder_ + "/" + name, 64); text && text->size() == 41) {
    if (auto id = ObjectId::from_hex(std::string_view{*text}.substr(0, 40))) return id;
  }
  BERTH_TRY(const auto found, refs(name));
  const auto at = found.find(name);
  if (at == found.end()) return std::nullopt;
  return at->second;
}

Result<std::map<std::string, ObjectId>> Repository::refs(const std::string& prefix) const {
  BERTH_TRY(const std::string text,
            output({.arguments = {"for-each-ref", "--format=%(objectname) %(refname)", prefix}},
                   refs_bytes_max));
  std::map<std::string, ObjectId> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view{text}.substr(at, end - at);
    at = end + 1;
    if (line.size() < 42) continue;
    if (const auto id = ObjectId::from_hex(line.substr(0, 40)))
      found[std::string{line.substr(41)}] = *id;
  }
  return found;
}

Result<> Repository::set_refs(const std::map<std::string, ObjectId>& refs) const {
  std::string commands = "start\n";
  for (const auto& [name, id] : refs) commands += "update " + name + " " + id.hex() + "\n";
  commands += "commit\n";
  BERTH_DO(run({.arguments = {"update-ref", "--stdin"}, .input = source_of(commands)}));
  return {};
}

Result<> Repository::remove_refs(const std::vector<std::string>& names) const {
  std::string commands = "start\n";
  for (const std::string& name : names) commands += "delete " + name + "\n";
  commands += "commit\n";
  BERTH_DO(run({.arguments = {"update-ref", "--stdin"}, .input = source_of(commands)}));
  return {};
}

Result<> Repository::forget_run(std::string_view run) const {
  std::vector<std::string> names;
  for (const RunRef what : {RunRef::base, RunRef::result, RunRef::commits}) {
    BERTH_TRY(const std::string name, ref_of(run, what));
    BERTH_TRY(const auto id, ref(name));
    if (id) names.push_back(name);
  }
  if (names.empty()) return {};
  return remove_refs(names);
}

Result<ObjectId> Repository::tree_of(const ObjectId& commit_or_tree) const {
  BERTH_TRY(const std::vector<ObjectId> trees, trees_of({commit_or_tree}));
  return trees.front();
}

Result<std::vector<ObjectId>> Repository::trees_of(
    const std::vector<ObjectId>& commits_or_trees) const {
  std::string asked;
  for (const ObjectId& id : commits_or_trees) asked += id.hex() + "^{tree}\n";
  BERTH_TRY(const std::string text,
            output({.arguments = {"cat-file", "--batch-check=%(objectname) %(objecttype)"},
                    .input = source_of(asked)}));
  std::vector<ObjectId> trees;
  std::string_view rest = text;
  for (const ObjectId& asked_for : commits_or_trees) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto id = ObjectId::from_hex(line.substr(0, 40));
    if (!id || line.substr(40) != " tree") {
      return fail(Errc::snapshot_not_found,
                  "snapshot " + asked_for.hex() + ": is not in " + folder_);
    }
    trees.push_back(*id);
  }
  return trees;
}

Result<FileLock> Repository::hold_objects() const {
  return FileLock::take(folder_ + "/berth/objects.lock", FileLock::Kind::shared);
}

Result<> Repository::collect_garbage() const {
  BERTH_TRY(const FileLock lock,
            FileLock::take(folder_ + "/berth/objects.lock", FileLock::Kind::exclusive));
  BERTH_DO(run({.arguments = {"gc", "--quiet", "--prune=now"}, .limits = {.time_max = long_work}}));
  return {};
}

Result<std::uint64_t> Repository::bytes() const {
  BERTH_TRY(const std::string text, output({.arguments = {"count-objects", "-v"}}));
  std::uint64_t total = 0;
  for (const std::string_view field : {"size: ", "size-pack: ", "size-garbage: "}) {
    const std::size_t at = text.find(std::string{"\n"} + std::string{field});
    if (at == std::string::npos) continue;
    std::uint64_t kibibytes = 0;
    std::from_chars(text.data() + at + 1 + field.size(), text.data() + text.size(), kibibytes);
    total += kibibytes * 1024;
  }
  return total;
}

}  // namespace berth::snapshots
