#include "snapshots/folder/scan.hpp"

#include "base/files.hpp"
#include "snapshots/beneath.hpp"
#include "snapshots/folder/ignore_rules.hpp"
#include "snapshots/folder/tracked.hpp"
#include "snapshots/folder/tree_name.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>

namespace berth::snapshots {
namespace {

constexpr std::size_t ignore_bytes_max = 1 << 20;
constexpr std::size_t offenders_max = 5;

// What only costs time to send, and can be made again in the place.
constexpr std::array<std::string_view, 9> heavy_names = {
    "node_modules", "vendor", "dist", "build", "out", "coverage", ".next", ".turbo", ".cache"};
// Folders of the machinery around a run.
constexpr std::array<std::string_view, 2> runtime_names = {".paperclip-runtime", ".berth"};
constexpr std::string_view draft_prefix = ".berth-apply-";

bool is_heavy(std::string_view name) {
  return std::ranges::find(heavy_names, name) != heavy_names.end() || name.starts_with("._");
}

bool is_runtime(std::string_view name) {
  return std::ranges::find(runtime_names, name) != runtime_names.end() ||
         name.starts_with(draft_prefix);
}

struct Child {
  std::string name;
  struct stat status = {};

  bool is_folder() const { return S_ISDIR(status.st_mode); }
};

// As git sorts a tree: a folder as if its name ended with a slash.
bool sorts_before(const Child& a, const Child& b) {
  const std::string_view left = a.name;
  const std::string_view right = b.name;
  const std::size_t common = std::min(left.size(), right.size());
  const int order = left.substr(0, common).compare(right.substr(0, common));
  if (order != 0) return order < 0;
  const auto next = [common](const Child& child) -> int {
    if (child.name.size() > common) return static_cast<unsigned char>(child.name[common]);
    return child.is_folder() ? '/' : 0;
  };
  return next(a) < next(b);
}

struct Frame {
  Fd folder;
  std::vector<Child> children = {};
  std::size_t next = 0;
  std::size_t path_bytes = 0;  // of the folder's own path
  std::size_t git_rules = 0;   // how many there were above
  std::size_t berth_rules = 0;
  bool inherited = false;  // a rule leaves this folder out; only exceptions in it are taken
};

class Scanner {
 public:
  Scanner(const ScanOptions& options, std::optional<Tracked> tracked, std::string shown)
      : options_(options), tracked_(std::move(tracked)), shown_(std::move(shown)) {
    if (tracked_) git_rules_.push(IgnoreFile::parse(tracked_->excludes(), ""));
    std::string lines;
    for (const std::string& pattern : options.exclude) lines += pattern + "\n";
    given_rules_.push(IgnoreFile::parse(lines, ""));
  }

  Result<Scan> scan(Fd root) {
    BERTH_DO(enter(std::move(root), 0, false));
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      path_.resize(frame.path_bytes);
      if (frame.next == frame.children.size()) {
        git_rules_.shrink(frame.git_rules);
        berth_rules_.shrink(frame.berth_rules);
        frames_.pop_back();
        continue;
      }
      BERTH_DO(examine(frame, frame.children[frame.next++]));
    }
    return std::move(result_);
  }

 private:
  Result<> enter(Fd folder, std::size_t path_bytes, bool inherited) {
    Frame frame{.folder = std::move(folder),
                .path_bytes = path_bytes,
                .git_rules = git_rules_.size(),
                .berth_rules = berth_rules_.size(),
                .inherited = inherited};
    BERTH_DO(read_children(frame));
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(frame.children, [&](const Child& c) { return c.name == name; });
    };
    if (has(".gitignore")) push_rules(git_rules_, frame, ".gitignore");
    if (has(".berthignore")) push_rules(berth_rules_, frame, ".berthignore");
    frames_.push_back(std::move(frame));
    return {};
  }

  void push_rules(IgnoreRules& rules, const Frame& frame, const std::string& name) const {
    const auto text = read_small(frame.folder.get(), name, ignore_bytes_max);
    if (text) rules.push(IgnoreFile::parse(*text, path_.substr(0, frame.path_bytes)));
  }

  Result<> read_children(Frame& frame) {
    Fd own{::openat(frame.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const Directory names{own ? ::fdopendir(own.get()) : nullptr};
    if (!names) return disk_failure("read", shown_path(), errno);
    static_cast<void>(own.release());
    while (true) {
      errno = 0;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
      const dirent* entry = ::readdir(names.get());
      if (entry == nullptr && errno != 0 && errno != ENOENT) {
        return disk_failure("read", shown_path(), errno);
      }
      if (entry == nullptr) break;
      Child child{.name = entry->d_name};
      if (child.name == "." || child.name == "..") continue;
      if (++looked_at_ > options_.limits.entries_max) return too_many();
      // What disappears meanwhile was not there.
      if (::fstatat(frame.folder.get(), child.name.c_str(), &child.status, AT_SYMLINK_NOFOLLOW) ==
          0) {
        frame.children.push_back(std::move(child));
      }
    }
    std::ranges::sort(frame.children, sorts_before);
    return {};
  }

  Result<> examine(const Frame& frame, const Child& child) {
    if (!path_.empty()) path_ += '/';
    path_ += child.name;
    if (child.name == ".git") return {};  // its content goes another way
    if (!problem_of_name(child.name).empty()) return note(Reason::name);
    if (is_runtime(child.name)) return {};
    const EntryKind kind = child.is_folder() ? EntryKind::folder : EntryKind::file;
    std::optional<Reason> against = judge(frame, child.name, kind);
    const bool exempt = against && is_exempt(*against);
    if (exempt) against.reset();
    if (child.is_folder()) return examine_folder(frame, child, against);
    if (against) return frame.inherited ? count_left_out() : note(*against);
    return take(child);
  }

  // Why a rule leaves the entry out. Our own rules come before those of git.
  std::optional<Reason> judge(const Frame& frame, std::string_view name, EntryKind kind) const {
    if (const auto verdict = given_rules_.verdict(path_, kind)) {
      return verdict == Verdict::ignored ? std::optional{Reason::excluded} : std::nullopt;
    }
    if (const auto verdict = berth_rules_.verdict(path_, kind)) {
      return verdict == Verdict::ignored ? std::optional{Reason::excluded} : std::nullopt;
    }
    if (frame.inherited) return Reason::ignored;
    if (!tracked_ && is_heavy(name)) return Reason::heavy;
    if (git_rules_.verdict(path_, kind) == Verdict::ignored) return Reason::ignored;
    return std::nullopt;
  }

  bool is_exempt(Reason against) const {
    for (const std::string& wanted : options_.include) {
      if (path_ == wanted || (path_.starts_with(wanted) && path_[wanted.size()] == '/'))
        return true;
    }
    return against == Reason::ignored && tracked_ && tracked_->has(path_);
  }

  // Whether something below a folder that is left out is taken nevertheless.
  bool leads_to_exemption(Reason against) const {
    const std::string prefix = path_ + "/";
    for (const std::string& wanted : options_.include) {
      if (wanted.starts_with(prefix)) return true;
    }
    return against == Reason::ignored && tracked_ && tracked_->has_below(path_);
  }

  Result<> examine_folder(const Frame& frame, const Child& child, std::optional<Reason> against) {
    const auto submodule = tracked_ ? tracked_->commit_of(path_) : std::nullopt;
    if (against && !submodule && !leads_to_exemption(*against)) {
      return frame.inherited ? count_left_out() : note(*against);
    }
    if (frames_.size() >= options_.limits.depth_max) {
      return fail(Errc::workspace_too_large,
                  shown_path() + ": is deeper than " + std::to_string(options_.limits.depth_max) +
                      " folders",
                  "leave it out: --exclude '" + escaped(path_) + "'");
    }
    Fd folder{open_beneath(frame.folder.get(), child.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
    if (!folder && errno == EXDEV) return note(Reason::other_file_system);
    if (!folder && (errno == EACCES || errno == EPERM)) return note(Reason::unreadable);
    if (!folder && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return {};
    if (!folder) return disk_failure("open", shown_path(), errno);
    struct stat inner{};
    const bool nested = ::fstatat(folder.get(), ".git", &inner, AT_SYMLINK_NOFOLLOW) == 0;
    if (nested || submodule) return take_nested(folder.get(), child, submodule);
    return enter(std::move(folder), path_.size(), frame.inherited || against.has_value());
  }

  Result<> take_nested(int folder, const Child& child, std::optional<ObjectId> submodule) {
    std::optional<ObjectId> commit;
    const Fd git{open_beneath(folder, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
    if (git) commit = head_of(git.get());
    if (!commit) commit = submodule;
    if (!commit) return note(Reason::nested_without_commit);
    result_.entries.push_back({.path = path_,
                               .mode = GitMode::commit,
                               .state = FileState::of(child.status),
                               .id = *commit});
    return note(Reason::nested_repository);
  }

  Result<> take(const Child& child) {
    const mode_t mode = child.status.st_mode;
    const FileState state = FileState::of(child.status);
    if (!S_ISREG(mode) && !S_ISLNK(mode)) return note(Reason::special_file);
    if (options_.hidden.contains({state.device, state.inode})) return note(Reason::excluded);
    if (S_ISREG(mode) && child.status.st_nlink > 1 &&
        options_.hard_links == ScanOptions::HardLinks::left_out) {
      return note(Reason::hard_link);
    }
    if (S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) != 0) BERTH_DO(note(Reason::set_id_bit));
    const GitMode kept = S_ISLNK(mode)           ? GitMode::link
                         : (mode & S_IXUSR) != 0 ? GitMode::program
                                                 : GitMode::file;
    result_.entries.push_back({.path = path_, .mode = kept, .state = state});
    result_.bytes += state.bytes;
    if (result_.entries.size() > options_.limits.files_max) return too_many();
    if (state.bytes > options_.limits.file_bytes_max)
      return too_big(options_.limits.file_bytes_max);
    if (result_.bytes > options_.limits.bytes_max) return too_big(options_.limits.bytes_max);
    return {};
  }

  Result<> note(Reason reason) {
    if (leaves_out(reason)) ++result_.left_out;
    if (result_.notices.size() < options_.limits.notices_max) {
      result_.notices.push_back({path_, reason});
    }
    return {};
  }

  Result<> count_left_out() {
    ++result_.left_out;
    return {};
  }

  std::string shown_path() const { return shown_ + (path_.empty() ? "" : "/" + escaped(path_)); }

  // The folders at the top with the most files.
  std::unexpected<Error> too_many() const {
    std::map<std::string_view, std::uint64_t> counts;
    for (const ScannedEntry& entry : result_.entries) {
      const std::string_view path = entry.path;
      const std::size_t slash = path.find('/');
      if (slash != std::string_view::npos) ++counts[path.substr(0, path.find('/', slash + 1))];
    }
    std::vector<std::pair<std::uint64_t, std::string>> largest;
    for (const auto& [path, count] : counts) largest.emplace_back(count, path);
    return refusal("has more than " + std::to_string(options_.limits.files_max) + " files",
                   std::move(largest), " files");
  }

  std::unexpected<Error> too_big(std::uint64_t limit) const {
    std::vector<std::pair<std::uint64_t, std::string>> largest;
    for (const ScannedEntry& entry : result_.entries) {
      largest.emplace_back(entry.state.bytes, entry.path);
    }
    return refusal("has more than " + std::to_string(limit) + " bytes" +
                       (limit == options_.limits.file_bytes_max ? " in one file" : ""),
                   std::move(largest), " bytes");
  }

  std::unexpected<Error> refusal(const std::string& rule,
                                 std::vector<std::pair<std::uint64_t, std::string>> largest,
                                 const std::string& unit) const {
    const std::size_t count = std::min(largest.size(), offenders_max);
    std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(count),
                      largest.end(), std::greater<>{});
    Error error{Errc::workspace_too_large, shown_ + ": " + rule + "; the largest:",
                "leave out what the run does not need, with --exclude or .berthignore"};
    for (std::size_t i = 0; i < count; ++i) {
      error.message += (i == 0 ? " '" : ", '") + escaped(largest[i].second) + "' (" +
                       std::to_string(largest[i].first) + unit + ")";
      error.facts["largest"].push_back(escaped(largest[i].second));
    }
    return std::unexpected(std::move(error));
  }

  const ScanOptions& options_;
  std::optional<Tracked> tracked_;
  std::string shown_;
  IgnoreRules given_rules_;
  IgnoreRules berth_rules_;
  IgnoreRules git_rules_;
  std::vector<Frame> frames_;
  std::string path_;
  std::uint64_t looked_at_ = 0;
  Scan result_;
};

}  // namespace

FileState FileState::of(const struct stat& status) {
  constexpr std::int64_t second = 1'000'000'000;
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = static_cast<std::uint64_t>(status.st_size),
          .modified_ns = status.st_mtim.tv_sec * second + status.st_mtim.tv_nsec,
          .changed_ns = status.st_ctim.tv_sec * second + status.st_ctim.tv_nsec,
          .mode = status.st_mode};
}

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::ignored: return "ignored";
    case Reason::excluded: return "excluded";
    case Reason::heavy: return "heavy";
    case Reason::special_file: return "special_file";
    case Reason::name: return "name";
    case Reason::other_file_system: return "other_file_system";
    case Reason::hard_link: return "hard_link";
    case Reason::unreadable: return "unreadable";
    case Reason::nested_repository: return "nested_repository";
    case Reason::nested_without_commit: return "nested_without_commit";
    case Reason::set_id_bit: return "set_id_bit";
    case Reason::lfs_pointer: return "lfs_pointer";
  }
  return "ignored";
}

bool leaves_out(Reason reason) {
  return reason != Reason::nested_repository && reason != Reason::set_id_bit &&
         reason != Reason::lfs_pointer;
}

Result<Scan> scan_folder(const Repository& repository, int root, const std::string& shown,
                         const ScanOptions& options) {
  BERTH_TRY(std::optional<Tracked> tracked, Tracked::of(repository, root, shown));
  Fd own{::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!own) return io_failure("open", shown, errno);
  return Scanner{options, std::move(tracked), shown}.scan(std::move(own));
}

}  // namespace berth::snapshots
