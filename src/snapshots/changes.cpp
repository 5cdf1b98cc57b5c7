#include "snapshots/changes.hpp"

#include "base/text.hpp"
#include "snapshots/beneath.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace berth::snapshots {
namespace {

constexpr std::chrono::minutes diff_time{10};
constexpr std::size_t list_bytes_max = 1 << 30;

std::uint64_t number_in(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

// Fields that end with NUL.
class NulFields {
 public:
  explicit NulFields(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  std::string_view next() {
    const std::string_view field = rest_.substr(0, rest_.find('\0'));
    rest_.remove_prefix(std::min(field.size() + 1, rest_.size()));
    return field;
  }

 private:
  std::string_view rest_;
};

std::optional<GitMode> mode_in_diff(std::string_view octal) {
  const auto value = static_cast<std::uint32_t>(number_in(octal, 8));
  if (value == 0) return std::nullopt;
  return static_cast<GitMode>(value);
}

// ":100644 100755 <id> <id> M" and the path.
Result<Change> change_of(std::string_view record, std::string_view path) {
  const auto old_id = ObjectId::from_hex(record.size() > 97 ? record.substr(15, 40) : "");
  const auto new_id = ObjectId::from_hex(record.size() > 97 ? record.substr(56, 40) : "");
  if (!old_id || !new_id)
    return fail(Errc::git_failed, "git diff-tree: wrote " + in_quotes(record));
  Change change{.path = std::string{path},
                .old_mode = mode_in_diff(record.substr(1, 6)),
                .new_mode = mode_in_diff(record.substr(8, 6)),
                .old_id = *old_id,
                .new_id = *new_id};
  switch (record[97]) {
    case 'A': change.kind = ChangeKind::added; break;
    case 'D': change.kind = ChangeKind::deleted; break;
    case 'T': change.kind = ChangeKind::type_changed; break;
    default: change.kind = ChangeKind::modified; break;
  }
  return change;
}

std::vector<std::string> diff_arguments(const ObjectId& base, const ObjectId& result,
                                        std::vector<std::string> options) {
  std::vector<std::string> arguments{"diff-tree",     "-r",        "--no-renames", "--no-ext-diff",
                                     "--no-textconv", "--no-color"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back(base.hex());
  arguments.push_back(result.hex());
  arguments.emplace_back("--");
  return arguments;
}

// "<added>\t<removed>\t<path>\0", with "-" for binary files.
Result<> count_lines(const Repository& repository, const ObjectId& base, const ObjectId& result,
                     std::vector<Change>& changes) {
  BERTH_TRY(const std::string text,
            repository.output({.arguments = diff_arguments(base, result, {"--numstat", "-z"}),
                               .limits = {.time_max = diff_time}},
                              list_bytes_max));
  auto at = changes.begin();
  for (NulFields fields{text}; !fields.at_end();) {
    const std::string_view record = fields.next();
    const std::size_t first = record.find('\t');
    const std::size_t second = record.find('\t', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = record.substr(second + 1);
    at = std::find_if(at, changes.end(), [&](const Change& c) { return c.path == path; });
    if (at == changes.end())
      return fail(Errc::git_failed, "git diff-tree: counted an unknown path");
    at->binary = record.starts_with('-');
    at->lines_added = number_in(record.substr(0, first));
    at->lines_removed = number_in(record.substr(first + 1, second - first - 1));
  }
  return {};
}

Result<> find_sizes(const Repository& repository, std::vector<Change>& changes) {
  std::string asked;
  const auto ask = [&asked](const std::optional<GitMode>& mode, const ObjectId& id) {
    if (mode && *mode != GitMode::commit) asked += id.hex() + "\n";
  };
  for (const Change& change : changes) {
    ask(change.old_mode, change.old_id);
    ask(change.new_mode, change.new_id);
  }
  if (asked.empty()) return {};
  BERTH_TRY(const std::string text,
            repository.output({.arguments = {"cat-file", "--batch-check=%(objectsize)", "--buffer"},
                               .input = source_of(asked),
                               .limits = {.time_max = diff_time}},
                              list_bytes_max));
  std::string_view rest = text;
  const auto take = [&rest](const std::optional<GitMode>& mode) -> std::uint64_t {
    if (!mode || *mode == GitMode::commit) return 0;
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    return number_in(line);
  };
  for (Change& change : changes) {
    change.old_bytes = take(change.old_mode);
    change.new_bytes = take(change.new_mode);
  }
  return {};
}

}  // namespace

std::string_view name_of(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::added: return "added";
    case ChangeKind::modified: return "modified";
    case ChangeKind::deleted: return "deleted";
    case ChangeKind::type_changed: return "type_changed";
  }
  return "modified";
}

Result<std::vector<Change>> differing_paths(const Repository& repository, const ObjectId& base,
                                            const ObjectId& result, const ChangeLimits& limits) {
  BERTH_TRY(const auto trees, repository.trees_of({base, result}));
  BERTH_TRY(const std::string text,
            repository.output(
                {.arguments = diff_arguments(trees[0], trees[1], {"--raw", "-z", "--no-abbrev"}),
                 .limits = {.time_max = diff_time}},
                list_bytes_max));
  std::vector<Change> changes;
  for (NulFields fields{text}; !fields.at_end();) {
    const std::string_view record = fields.next();
    BERTH_TRY(Change change, change_of(record, fields.next()));
    changes.push_back(std::move(change));
    if (changes.size() > limits.changes_max) {
      return fail(Errc::workspace_too_large, "snapshot " + result.hex() + ": has more than " +
                                                 std::to_string(limits.changes_max) + " changes");
    }
  }
  return changes;
}

Result<std::vector<Change>> list_changes(const Repository& repository, const ObjectId& base,
                                         const ObjectId& result, const ChangeLimits& limits) {
  BERTH_TRY(std::vector<Change> changes, differing_paths(repository, base, result, limits));
  if (changes.empty()) return changes;
  BERTH_TRY(const auto trees, repository.trees_of({base, result}));
  BERTH_DO(count_lines(repository, trees[0], trees[1], changes));
  BERTH_DO(find_sizes(repository, changes));
  return changes;
}

Result<FileDiff> diff_file(const Repository& repository, const ObjectId& base,
                           const ObjectId& result, const std::string& path,
                           const ChangeLimits& limits) {
  BERTH_TRY(const auto trees, repository.trees_of({base, result}));
  GitCall call{.arguments = diff_arguments(trees[0], trees[1], {"--patch"}),
               // The path is exactly this one, whatever it looks like.
               .variables = {{"GIT_LITERAL_PATHSPECS", "1"}},
               .limits = {.time_max = diff_time}};
  call.arguments.push_back(path);
  FileDiff diff;
  call.output = [&](std::string_view piece) -> Result<> {
    const std::size_t room = limits.diff_bytes_max - diff.text.size();
    diff.text += piece.substr(0, room);
    diff.cut = diff.cut || piece.size() > room;
    // The rest is not worth git's time.
    if (diff.cut) return fail(Errc::body_too_large, "the diff is too long");
    return {};
  };
  const auto done = repository.run(call);
  if (!done && !diff.cut) return std::unexpected(done.error());
  return diff;
}

Result<> write_patch(const Repository& repository, const ObjectId& base, const ObjectId& result,
                     const ByteSink& sink, const ChangeLimits& limits) {
  BERTH_TRY(const auto trees, repository.trees_of({base, result}));
  BERTH_DO(repository.run(
      {.arguments = diff_arguments(trees[0], trees[1], {"--patch", "--binary", "--full-index"}),
       .output = sink,
       .limits = {.time_max = diff_time, .output_bytes_max = limits.patch_bytes_max}}));
  return {};
}

}  // namespace berth::snapshots
