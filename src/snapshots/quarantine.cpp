#include "snapshots/quarantine.hpp"

#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "base/text.hpp"
#include "snapshots/bundle_header.hpp"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace berth::snapshots {
namespace {

constexpr std::size_t pack_start_bytes = 12;  // "PACK", version, number of objects

std::unexpected<Error> bad_bundle(const std::string& what) {
  return fail(Errc::bundle_invalid, "bundle: " + what,
              "make it in the place with git bundle create");
}

std::unexpected<Error> big_bundle(const std::string& what, std::uint64_t limit) {
  return fail(Errc::bundle_too_large, "bundle: " + what + " is more than " + std::to_string(limit),
              "send fewer commits, or raise the limit");
}

// The bytes of a bundle, counted, with a beginning that can be looked at first.
class CountedSource {
 public:
  CountedSource(const ByteSource& source, std::uint64_t bytes_max)
      : source_(source), bytes_max_(bytes_max) {}

  // At least this many bytes are in `start` afterwards, unless there are no more.
  Result<> fill(std::size_t bytes) {
    while (start.size() < bytes) {
      BERTH_TRY(const std::string_view piece, pull());
      if (piece.empty()) return {};
      start += piece;
    }
    return {};
  }
  Result<std::string_view> next() {
    if (!start.empty()) {
      given_ = std::exchange(start, {});
      return given_;
    }
    return pull();
  }

  std::string start;

 private:
  Result<std::string_view> pull() {
    BERTH_TRY(const std::string_view piece, source_());
    count_ += piece.size();
    if (count_ > bytes_max_) return big_bundle("its size in bytes", bytes_max_);
    return piece;
  }

  const ByteSource& source_;
  std::uint64_t bytes_max_;
  std::uint64_t count_ = 0;
  std::string given_;
};

class Quarantine {
 public:
  Quarantine(const Repository& repository, std::string_view run, const BundleLimits& limits)
      : repository_(repository),
        limits_(limits),
        folder_(repository.folder() + "/berth/quarantine-" + std::string{run}) {}
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;
  ~Quarantine() { static_cast<void>(remove_tree(folder_)); }

  Result<BundleCommits> accept(std::string_view ref, const ByteSource& bundle) {
    BERTH_DO(remove_tree(folder_));
    BERTH_DO(make_directories(folder_ + "/pack", 0700));
    CountedSource source{bundle, limits_.bytes_max};
    BERTH_TRY(const ObjectId tip, read_header(source, ref));
    BERTH_DO(index(source));
    BundleCommits commits{.tip = tip};
    BERTH_TRY(commits.objects, measure());
    BERTH_TRY(commits.commits, check_history(tip));
    return commits;
  }

  // The pack before its index, which is what makes git see it.
  Result<> join() const {
    BERTH_TRY(const std::vector<std::string> names, names_in(folder_ + "/pack"));
    for (const bool indexes : {false, true}) {
      for (const std::string& name : names) {
        if (name.ends_with(".idx") != indexes || !name.starts_with("pack-")) continue;
        const std::string from = folder_ + "/pack/" + name;
        const std::string to = repository_.folder() + "/objects/pack/" + name;
        if (::rename(from.c_str(), to.c_str()) != 0) return io_failure("move", from, errno);
      }
    }
    return {};
  }

 private:
  Result<ObjectId> read_header(CountedSource& source, std::string_view ref) const {
    while (!source.start.contains("\n\n") && source.start.size() < BundleHeader::bytes_max) {
      const std::size_t before = source.start.size();
      BERTH_DO(source.fill(before + 1));
      if (source.start.size() == before) break;
    }
    BERTH_TRY(const BundleHeader header, BundleHeader::parse(source.start));
    if (header.refs.size() != 1 || header.refs.front().first != ref) {
      return bad_bundle("brings other refs than " + in_quotes(ref) + " alone");
    }
    for (const ObjectId& id : header.needs) {
      if (!repository_.tree_of(id)) {
        return bad_bundle("needs the commit " + id.hex() + ", which this workspace does not have");
      }
    }
    source.start.erase(0, header.bytes);
    BERTH_DO(source.fill(pack_start_bytes));
    if (source.start.size() < pack_start_bytes || !source.start.starts_with("PACK")) {
      return bad_bundle("has no pack");
    }
    std::uint64_t objects = 0;
    for (std::size_t i = 8; i < pack_start_bytes; ++i) {
      objects = objects << 8 | static_cast<unsigned char>(source.start[i]);
    }
    if (objects > limits_.objects_max)
      return big_bundle("its number of objects", limits_.objects_max);
    return header.refs.front().second;
  }

  GitLimits git_limits() const {
    return {.time_max = limits_.time_max,
            .memory_bytes_max = limits_.memory_bytes_max,
            .file_bytes_max = std::max<std::uint64_t>(limits_.bytes_max * 2, 64 << 20)};
  }

  std::vector<std::pair<std::string, std::string>> inside() const {
    return {{"GIT_OBJECT_DIRECTORY", folder_},
            {"GIT_ALTERNATE_OBJECT_DIRECTORIES", repository_.folder() + "/objects"}};
  }

  // A failure of git here is the bundle's fault.
  template <class T>
  static Result<T> blamed(Result<T> result) {
    if (result || result.error().code != Errc::git_failed) return result;
    return bad_bundle(result.error().message);
  }

  Result<> index(CountedSource& source) const {
    BERTH_DO(
        blamed(repository_.run({.arguments = {"index-pack", "--stdin", "--strict", "--fix-thin"},
                                .variables = inside(),
                                .input = [&source] { return source.next(); },
                                .limits = git_limits()})));
    return {};
  }

  // Of the new objects alone: the alternates are left out.
  Result<std::uint64_t> measure() const {
    std::uint64_t objects = 0;
    std::uint64_t bytes = 0;
    std::string rest;
    const ByteSink take = [&](std::string_view piece) -> Result<> {
      rest += piece;
      std::size_t at = 0;
      for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', at)) {
        std::uint64_t size = 0;
        std::from_chars(rest.data() + at, rest.data() + end, size);
        at = end + 1;
        ++objects;
        bytes += size;
        if (size > limits_.object_bytes_max) {
          return big_bundle("one of its objects in bytes", limits_.object_bytes_max);
        }
        if (bytes > limits_.inflated_bytes_max) {
          return big_bundle("the sum of its objects in bytes", limits_.inflated_bytes_max);
        }
      }
      rest.erase(0, at);
      return {};
    };
    BERTH_DO(blamed(repository_.run({.arguments = {"cat-file", "--batch-all-objects", "--unordered",
                                                   "--batch-check=%(objectsize)"},
                                     .variables = {{"GIT_OBJECT_DIRECTORY", folder_}},
                                     .output = take,
                                     .limits = git_limits()})));
    return objects;
  }

  // Everything that the tip needs is here or was there before.
  Result<std::uint64_t> check_history(const ObjectId& tip) const {
    const auto type = blamed(repository_.output({.arguments = {"cat-file", "-t", tip.hex()},
                                                 .variables = inside(),
                                                 .limits = git_limits()}));
    if (!type) return std::unexpected(type.error());
    if (*type != "commit\n") return bad_bundle("its ref is not a commit");
    BERTH_DO(blamed(repository_.run(
        {.arguments = {"rev-list", "--objects", "--quiet", tip.hex(), "--not", "--all"},
         .variables = inside(),
         .limits = git_limits()})));
    BERTH_TRY(const std::string text,
              blamed(repository_.output(
                  {.arguments = {"rev-list", "--count", tip.hex(), "--not", "--all"},
                   .variables = inside(),
                   .limits = git_limits()})));
    std::uint64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

  const Repository& repository_;
  const BundleLimits& limits_;
  std::string folder_;
};

}  // namespace

Result<BundleCommits> accept_bundle(const Repository& repository, std::string_view run,
                                    std::string_view ref, const ByteSource& bundle,
                                    const BundleLimits& limits) {
  BERTH_TRY(const std::string name, Repository::ref_of(run, RunRef::commits));
  BERTH_TRY(const FileLock objects, repository.hold_objects());
  Quarantine quarantine{repository, run, limits};
  BERTH_TRY(const BundleCommits commits, quarantine.accept(ref, bundle));
  fault_point("quarantine.checked");
  BERTH_DO(quarantine.join());
  fault_point("quarantine.joined");
  BERTH_DO(repository.set_refs({{name, commits.tip}}));
  return commits;
}

}  // namespace berth::snapshots
