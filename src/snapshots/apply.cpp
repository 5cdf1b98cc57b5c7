#include "snapshots/apply.hpp"

#include "base/digest.hpp"
#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/random.hpp"
#include "snapshots/apply_journal.hpp"
#include "snapshots/beneath.hpp"
#include "snapshots/checkout.hpp"
#include "snapshots/folder/tree_name.hpp"
#include "snapshots/placement.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ranges>
#include <set>
#include <unordered_map>

namespace berth::snapshots {
namespace {

constexpr std::size_t journal_bytes_max = 1 << 30;

using MaybeOwner = std::optional<std::pair<uid_t, gid_t>>;

Result<Fd> open_target(const std::string& target) {
  Fd root{::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (root) return root;
  return fail(Errc::workspace_invalid, io_failure("open", target, errno).error().message,
              "name a folder that the server may write");
}

// A server that is root gives what it writes to the owner of the target.
MaybeOwner owner_for(int root) {
  struct stat status{};
  if (::geteuid() != 0 || ::fstat(root, &status) != 0 || status.st_uid == 0) return std::nullopt;
  return std::pair{status.st_uid, status.st_gid};
}

mode_t mode_for(const Change& change, const std::optional<FileState>& before) {
  const bool program = change.new_mode == GitMode::program;
  if (!before || !S_ISREG(before->mode)) return program ? 0755 : 0644;
  const mode_t kept = before->mode & 0777;
  // Every user who may read it may run it, as git has it.
  return program ? kept | (kept & 0444) >> 2 : kept & ~mode_t{0111};
}

// Writes the new content of each step into its slot of the draft folder.
class DraftSink : public BlobSink {
 public:
  struct Draft {
    const Change* change;
    std::string slot;
    mode_t mode;
  };
  DraftSink(int folder, const std::vector<Draft>& drafts, MaybeOwner owner)
      : folder_(folder), drafts_(drafts), owner_(owner) {}

  Result<> begin(std::size_t index, std::uint64_t bytes) override {
    draft_ = &drafts_[index];
    target_.clear();
    if (is_link()) {
      if (bytes == 0 || bytes >= PATH_MAX)
        return refuse(draft_->change->path, "is a link to nowhere");
      return {};
    }
    file_ = Fd{::openat(folder_, draft_->slot.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file_) return disk_failure("create", draft_->change->path, errno);
    return {};
  }
  Result<> write(std::string_view piece) override {
    if (is_link()) {
      target_ += piece;
      return {};
    }
    while (!piece.empty()) {
      const ssize_t wrote = ::write(file_.get(), piece.data(), piece.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return disk_failure("write", draft_->change->path, errno);
      piece.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }
  Result<> end() override {
    const std::string& path = draft_->change->path;
    if (is_link()) {
      if (target_.contains('\0')) return refuse(path, "is a link with a NUL in its target");
      if (::symlinkat(target_.c_str(), folder_, draft_->slot.c_str()) != 0) {
        return disk_failure("link", path, errno);
      }
    } else if (::fchmod(file_.get(), draft_->mode) != 0) {
      return disk_failure("set the mode of", path, errno);
    }
    if (owner_ && ::fchownat(folder_, draft_->slot.c_str(), owner_->first, owner_->second,
                             AT_SYMLINK_NOFOLLOW) != 0) {
      return disk_failure("give away", path, errno);
    }
    file_ = {};
    return {};
  }

 private:
  bool is_link() const { return draft_->change->new_mode == GitMode::link; }

  int folder_;
  const std::vector<Draft>& drafts_;
  MaybeOwner owner_;
  const Draft* draft_ = nullptr;
  Fd file_;
  std::string target_;
};

// Few files are synced one by one: a sync of the whole file system would wait for everybody's
// writes.
constexpr std::size_t synced_alone_max = 256;

bool sync_entry(int folder, const std::string& path) {
  const Fd entry{open_beneath(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)};
  // A link has no content of its own, and a folder that was removed nothing to lose.
  if (!entry) return errno == ELOOP || errno == ENOENT || errno == ENOTDIR;
  return ::fsync(entry.get()) == 0;
}

bool sync_drafts(int draft, const std::vector<ApplyStep>& steps) {
  if (steps.size() > synced_alone_max) return ::syncfs(draft) == 0;
  for (const ApplyStep& step : steps) {
    if (step.after && !sync_entry(draft, step.slot)) return false;
  }
  return ::fsync(draft) == 0;
}

// The names in the folders of all steps, and in those above: they may be new.
bool sync_folders(int root, const std::vector<ApplyStep>& steps) {
  std::set<std::string> folders{"."};
  for (const ApplyStep& step : steps) {
    for (std::size_t slash = step.path.find('/'); slash != std::string::npos;
         slash = step.path.find('/', slash + 1)) {
      folders.insert(step.path.substr(0, slash));
    }
  }
  if (folders.size() > synced_alone_max) return ::syncfs(root) == 0;
  return std::ranges::all_of(folders, [root](const auto& path) { return sync_entry(root, path); });
}

std::unexpected<Error> conflicted(const std::string& target, const std::vector<std::string>& paths,
                                  const std::string& why) {
  Error error{Errc::merge_conflict, target + ": " + why + ":", {}};
  for (const std::string& path : paths) {
    if (error.facts["conflicts"].size() < 5) error.message += " '" + escaped(path) + "'";
    error.facts["conflicts"].push_back(escaped(path));
  }
  error.remedy = "resolve them with --conflicts=markers, --ours or --theirs, or apply elsewhere";
  return std::unexpected(std::move(error));
}

}  // namespace

struct Apply::Plan {
  ApplyReport report;
  bool clean = false;
  std::unordered_map<std::string, FileState> states;  // of the paths that change
};

Apply::Apply(const Repository& repository, std::string target)
    : repository_(repository),
      target_(std::move(target)),
      key_(sha256_hex(repository.folder() + '\0' + target_)) {}

std::string Apply::journal_path() const {
  return repository_.folder() + "/berth/apply-" + key_.substr(0, 32) + ".journal";
}

Result<Apply::Plan> Apply::plan(const ObjectId& base, const ObjectId& result,
                                const ApplyOptions& options) const {
  BERTH_TRY(const Snapshot now, take_snapshot(repository_, target_,
                                              {.scan = options.scan,
                                               .parent = base,
                                               .cache = options.cache,
                                               .message = "before apply"}));
  const MergeSides sides{.base = base, .ours = now.tree, .theirs = result};
  BERTH_TRY(const Merge merge, merge_snapshots(repository_, sides));
  Plan plan;
  plan.report.conflicts = merge.conflicts;
  plan.clean = merge.clean;
  plan.report.merged = merge.tree;
  if (!merge.clean) {
    if (options.on_conflict == OnConflict::refuse) {
      for (const std::string& path : merge.conflicted) {
        const auto named = [&](const Conflict& c) {
          return std::ranges::find(c.paths, path) != c.paths.end();
        };
        if (std::ranges::none_of(merge.conflicts, named)) {
          plan.report.conflicts.push_back({.paths = {path}, .kind = "contents", .message = {}});
        }
      }
      return plan;
    }
    if (options.on_conflict == OnConflict::markers) {
      BERTH_TRY(plan.report.merged, with_their_binaries(repository_, sides, merge));
    } else {
      const Side side = options.on_conflict == OnConflict::ours ? Side::ours : Side::theirs;
      BERTH_TRY(plan.report.merged, resolve(repository_, sides, merge, side));
    }
  }
  BERTH_TRY(std::vector<Change> changes,
            differing_paths(repository_, now.tree, plan.report.merged));
  for (Change& change : changes) {
    if (change.new_mode == GitMode::commit || change.old_mode == GitMode::commit) {
      plan.report.nested.push_back(change.path);
      continue;
    }
    if (change.new_mode) BERTH_DO(check_tree_path(change.path, CheckoutLimits{}.depth_max));
    plan.states.emplace(change.path, FileState{});
    plan.report.changes.push_back(std::move(change));
  }
  for (const ScannedEntry& entry : now.entries) {
    if (const auto at = plan.states.find(entry.path); at != plan.states.end()) {
      at->second = entry.state;
    }
  }
  return plan;
}

Result<ApplyReport> Apply::check(const ObjectId& base, const ObjectId& result,
                                 const ApplyOptions& options) const {
  BERTH_TRY(const FileLock objects, repository_.hold_objects());
  BERTH_TRY(Plan made, plan(base, result, options));
  return std::move(made.report);
}

Result<ApplyReport> Apply::apply(const ObjectId& base, const ObjectId& result,
                                 const ApplyOptions& options) const {
  BERTH_TRY(const FileLock lock,
            FileLock::take(journal_path() + ".lock", FileLock::Kind::exclusive));
  BERTH_TRY(const FileLock objects, repository_.hold_objects());
  BERTH_TRY(std::vector<std::string> unfinished, recover_locked());
  BERTH_TRY(Plan made, plan(base, result, options));
  made.report.unfinished = std::move(unfinished);
  if (!made.clean && options.on_conflict == OnConflict::refuse) {
    std::vector<std::string> paths;
    for (const Conflict& conflict : made.report.conflicts) {
      paths.insert(paths.end(), conflict.paths.begin(), conflict.paths.end());
    }
    std::ranges::sort(paths);
    const auto rest = std::ranges::unique(paths);
    paths.erase(rest.begin(), rest.end());
    return conflicted(target_, paths, "both sides changed");
  }
  if (!made.report.changes.empty()) BERTH_DO(write(made));
  made.report.written = true;
  return std::move(made.report);
}

Result<> Apply::write(const Plan& plan) const {
  BERTH_TRY(const Fd root, open_target(target_));
  SystemRandom random;
  ApplyJournal journal{.target = target_, .draft = draft_prefix() + random_base64url(random, 9)};
  if (::mkdirat(root.get(), journal.draft.c_str(), 0700) != 0) {
    return disk_failure("create a draft in", target_, errno);
  }
  const Fd draft{open_beneath(root.get(), journal.draft, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
  if (!draft) return disk_failure("open the draft in", target_, errno);
  const MaybeOwner owner = owner_for(root.get());
  const auto discard = [&](Error error) {
    static_cast<void>(remove_beneath(root.get(), journal.draft));
    return std::unexpected(std::move(error));
  };

  std::vector<DraftSink::Draft> drafts;
  std::vector<ObjectId> blobs;
  // Removals first, so that a folder can take the place of a file, and a file that of a folder.
  for (const bool removal : {true, false}) {
    for (const Change& change : plan.report.changes) {
      if (change.new_mode.has_value() == removal) continue;
      ApplyStep step{.path = change.path, .slot = std::to_string(journal.steps.size())};
      if (change.old_mode) step.before = plan.states.at(change.path);
      if (!removal) {
        drafts.push_back({&change, step.slot, mode_for(change, step.before)});
        blobs.push_back(change.new_id);
      }
      journal.steps.push_back(std::move(step));
    }
  }
  DraftSink sink{draft.get(), drafts, owner};
  if (auto read = read_blobs(repository_, blobs, sink); !read) return discard(read.error());
  for (ApplyStep& step : journal.steps) step.after = state_at(draft.get(), step.slot);
  if (!sync_drafts(draft.get(), journal.steps)) {
    return discard(disk_failure("sync", target_, errno).error());
  }
  fault_point("apply.drafted");
  if (auto kept = replace_file(journal_path(), journal.text(), 0600); !kept) {
    return discard(kept.error());
  }
  fault_point("apply.journaled");
  return place(journal, root.get(), draft.get());
}

Result<> Apply::place(const ApplyJournal& journal, int root, int draft) const {
  const Placement placement{root, draft, owner_for(root)};
  std::vector<const ApplyStep*> done;
  std::optional<Error> failure;
  std::vector<std::string> changed;
  bool removing = true;
  for (const ApplyStep& step : journal.steps) {
    if (removing && step.after) {
      removing = false;
      for (const ApplyStep* removed : done) placement.remove_empty_folders(removed->path);
    }
    const auto outcome = placement.place(step);
    if (!outcome) failure = outcome.error();
    if (outcome == Placement::Outcome::changed) changed.push_back(step.path);
    if (outcome != Placement::Outcome::done) break;
    done.push_back(&step);
    fault_point("apply.placing");
  }
  bool keep_draft = false;
  if (failure || !changed.empty()) {
    for (const ApplyStep* step : done | std::views::reverse) {
      const auto undone = placement.undo(*step);
      keep_draft = keep_draft || !undone || *undone == Placement::Outcome::changed;
    }
    for (const ApplyStep* step : done) {
      if (step->after && !step->before) placement.remove_empty_folders(step->path);
    }
  } else if (removing) {
    for (const ApplyStep* removed : done) placement.remove_empty_folders(removed->path);
  }
  if (!sync_folders(root, journal.steps) && !failure)
    failure = disk_failure("sync", target_, errno).error();
  fault_point("apply.placed");
  if (::unlink(journal_path().c_str()) != 0 && !failure) {
    failure = io_failure("remove", journal_path(), errno).error();
  }
  fault_point("apply.forgotten");
  const std::string kept = "berth-kept" + journal.draft.substr(draft_prefix().size() - 1);
  if (keep_draft) {
    // Under a name that a user sees and that nothing cleans up.
    ::renameat2(root, journal.draft.c_str(), root, kept.c_str(), RENAME_NOREPLACE);
  } else {
    static_cast<void>(remove_beneath(root, journal.draft));
  }
  if (failure) return std::unexpected(*std::move(failure));
  if (changed.empty()) return {};
  auto error = conflicted(target_, changed, "changed while it was applied, so nothing was");
  if (keep_draft) error.error().message += "; what was in the way is in '" + kept + "'";
  error.error().remedy = "apply again";
  return error;
}

Result<std::vector<std::string>> Apply::recover() const {
  BERTH_TRY(const FileLock lock,
            FileLock::take(journal_path() + ".lock", FileLock::Kind::exclusive));
  return recover_locked();
}

Result<std::vector<std::string>> Apply::recover_locked() const {
  BERTH_TRY(const Fd root, open_target(target_));
  const auto text = read_file(journal_path(), journal_bytes_max);
  if (!text) {
    BERTH_DO(remove_stale_drafts(root.get()));
    return std::vector<std::string>{};
  }
  const auto journal = ApplyJournal::parse(*text);
  if (!journal || journal->target != target_) {
    return fail(Errc::workspace_corrupt, journal_path() + ": is not a journal of an apply",
                "delete it, and compare the target with the result");
  }
  const Fd draft{open_beneath(root.get(), journal->draft, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
  std::vector<std::string> changed;
  if (draft) {
    const Placement placement{root.get(), draft.get(), owner_for(root.get())};
    for (const ApplyStep& step : journal->steps) {
      BERTH_TRY(const Placement::Outcome outcome, placement.place(step));
      if (outcome == Placement::Outcome::changed) changed.push_back(step.path);
      if (!step.after) placement.remove_empty_folders(step.path);
    }
    if (!sync_folders(root.get(), journal->steps)) return disk_failure("sync", target_, errno);
  }
  if (::unlink(journal_path().c_str()) != 0) return io_failure("remove", journal_path(), errno);
  BERTH_DO(remove_stale_drafts(root.get()));
  return changed;
}

// Drafts of processes that were killed before they had written their journal, or after they had
// removed it. The caller holds the lock, so nobody works on them.
Result<> Apply::remove_stale_drafts(int root) const {
  BERTH_TRY(const std::vector<std::string> names,
            names_in("/proc/self/fd/" + std::to_string(root)));
  for (const std::string& name : names) {
    if (name.starts_with(draft_prefix())) BERTH_DO(remove_beneath(root, name));
  }
  return {};
}

}  // namespace berth::snapshots
