#include "places/linux/snapshots.hpp"

#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "files/tree_diff.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/skeleton.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

namespace berth::places {
namespace {

constexpr const char* template_field = "template";

Result<keeper::KeeperClient> client_of(const LiveSandbox& sandbox) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(sandbox.keeper_folder));
  return keeper::KeeperClient{std::move(socket)};
}

// The keeper's descriptor is O_PATH only; this one can be read.
Result<Fd> open_upper(keeper::KeeperClient& client, const LiveSandbox& sandbox) {
  BERTH_TRY(const Fd named, client.root(keeper::Part::upper));
  Fd upper{::openat(named.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!upper) return io_failure("open", sandbox.name + ": what it has written", errno);
  return upper;
}

// Where the file ids begin: a sandbox's root directory belongs to its own root, or to a user that
// root gave it to. In an ordinary user's sandbox all files have the same id.
Result<images::IdRange> ids_of(int upper, const LiveSandbox& sandbox) {
  struct stat seen{};
  if (::fstat(upper, &seen) != 0) return io_failure("look at", sandbox.name, errno);
  const std::uint32_t given_to =
      ::geteuid() == 0 ? seen.st_uid % keeper::sandbox::plan_limits::ids : 0;
  return images::IdRange{.first = seen.st_uid - given_to};
}

// As the keeper mounts it. Without layers there is no overlay.
images::OverlayMarks marks_of(const RootLayers& root) {
  using keeper::sandbox::Standing;
  if (keeper::sandbox::standing_here() == Standing::root) return images::OverlayMarks::trusted;
  return root.layers.empty() ? images::OverlayMarks::none : images::OverlayMarks::user;
}

// Same as the sandbox's own limit: what fits there fits here.
images::Limits copy_limits_of(const core::LinuxConfig& config) {
  images::Limits limits;
  if (config.disk_mb) {
    limits.bytes_max = std::max<std::uint64_t>(limits.bytes_max,
                                               static_cast<std::uint64_t>(*config.disk_mb) << 20);
  }
  return limits;
}

Result<images::Template> copy_upper(int upper, const LiveSandbox& sandbox, const HeldImages& images,
                                    const CaptureTemplate& request) {
  BERTH_TRY(const images::IdRange ids, ids_of(upper, sandbox));
  BERTH_TRY(const RootLayers root, images.layers_for(sandbox.config));
  std::optional<images::Template> made;
  const auto copy = [&](const images::ImageStore& /*store*/,
                        const images::TemplateStore& templates) -> Result<> {
    // Names are for people and belong to companies; here the id is enough.
    images::CaptureRequest wanted{.id = request.key.str(),
                                  .name = "template " + request.key.str(),
                                  .base_image = sandbox.config.image.value_or("host"),
                                  .ids = ids,
                                  .marks = marks_of(root),
                                  .limits = copy_limits_of(sandbox.config)};
    if (sandbox.config.template_) {
      BERTH_TRY(const images::Template below, templates.find(*sandbox.config.template_));
      wanted.base_image = below.base_image;
      wanted.parent = below.id;
    }
    BERTH_TRY(made, templates.capture(upper, wanted));
    return {};
  };
  BERTH_DO(images.with_stores(copy));
  return *std::move(made);
}

void let_go_on(keeper::KeeperClient& client, const LiveSandbox& sandbox) {
  const Result<> thawed = client.thaw();
  if (thawed) return;
  log::warn("sandbox.not_thawed", {{"sandbox", sandbox.name}, {"error", thawed.error().message}});
}

EntryKind kind_of(files::LayerEntry entry) {
  switch (entry) {
    case files::LayerEntry::file: return EntryKind::file;
    case files::LayerEntry::directory: return EntryKind::directory;
    case files::LayerEntry::symbolic_link: return EntryKind::symbolic_link;
    case files::LayerEntry::other: break;
  }
  return EntryKind::other;
}

ChangeKind kind_of(files::LayerChange change) {
  switch (change) {
    case files::LayerChange::added: return ChangeKind::added;
    case files::LayerChange::changed: return ChangeKind::changed;
    case files::LayerChange::removed: break;
  }
  return ChangeKind::removed;
}

// What a sandbox on the host's programs contains before anything is written.
std::vector<files::BornWith> skeleton_of(const core::LinuxConfig& config) {
  using namespace keeper::sandbox;
  std::vector<files::BornWith> all;
  for (const SkeletonFolder& folder : skeleton_folders) {
    all.push_back({.path = folder.path, .mode = folder.mode});
  }
  for (const SkeletonFile& file : skeleton_files) {
    all.push_back({.path = file.path,
                   .entry = files::LayerEntry::file,
                   .text = std::string{file.text},
                   .mode = skeleton_file_mode});
  }
  // A covered path has neither content nor a mode that a process inside could change.
  const auto add_part = [&](const char* path) {
    struct stat seen{};
    if (::stat(path, &seen) == 0) {
      const bool is_file = S_ISREG(seen.st_mode);
      all.push_back({.path = path + 1,
                     .entry = is_file ? files::LayerEntry::file : files::LayerEntry::directory});
    }
  };
  for (const char* path : usr_links) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(path, target.data(), target.size());
    if (size <= 0) {
      add_part(path);
      continue;
    }
    all.push_back({.path = path + 1,
                   .entry = files::LayerEntry::symbolic_link,
                   .text = {target.data(), static_cast<std::size_t>(size)}});
  }
  for (const char* path : etc_parts) add_part(path);
  if (config.network == core::LinuxNetwork::host) add_part(name_servers_file);
  return all;
}

// A folder that setup creates if it is missing, and its parents.
void add_own(std::set<std::string>& own, const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    own.insert(path.substr(1, end - 1));
  if (path.size() > 1) own.insert(path.substr(1));
}

}  // namespace

Result<CapturedTemplate> capture_sandbox(const LiveSandbox& sandbox, const HeldImages& images,
                                         const CaptureTemplate& request) {
  BERTH_TRY(keeper::KeeperClient client, client_of(sandbox));
  BERTH_TRY(const Fd upper, open_upper(client, sandbox));
  const Result<> frozen = client.freeze();
  fault_point("linux.frozen");
  const Result<images::Template> made = copy_upper(upper.get(), sandbox, images, request);
  fault_point("linux.copied");
  if (request.afterwards == Afterwards::goes_on) let_go_on(client, sandbox);
  if (!made) return std::unexpected(made.error());
  bj::object metadata{{"bytes", made->bytes},
                      {"entries", made->entries},
                      {"depth", made->depth},
                      {"baseImage", made->base_image},
                      {"frozenWhileCopied", frozen.has_value()}};
  return CapturedTemplate{.ref = made->id,
                          .kind = core::TemplateKind::snapshot,
                          .binding = {.field = template_field},
                          .metadata = std::move(metadata)};
}

Result<bool> delete_captured(const HeldImages& images, const DeleteTemplate& request) {
  bool was_there = true;
  const auto remove = [&](const images::ImageStore& /*store*/,
                          const images::TemplateStore& templates) -> Result<> {
    const Result<> removed = templates.remove(request.key.str());
    was_there = removed.has_value();
    if (removed || removed.error().code != Errc::template_not_found) return removed;
    return {};
  };
  BERTH_DO(images.with_stores(remove));
  return was_there;
}

Result<Changes> changes_of(const LiveSandbox& sandbox, const HeldImages& images) {
  BERTH_TRY(keeper::KeeperClient client, client_of(sandbox));
  BERTH_TRY(const Fd upper, open_upper(client, sandbox));
  // Looked up again, not held: the sandbox's own holder has it.
  BERTH_TRY(const RootLayers root, images.layers_for(sandbox.config));
  files::DiffRequest request{.upper = upper.get(), .marks = marks_of(root)};
  for (auto layer = root.layers.rbegin(); layer != root.layers.rend(); ++layer) {
    request.lower.emplace_back(::open(layer->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!request.lower.back()) return io_failure("open", *layer, errno);
  }
  if (root.over_host) {
    request.born_with = skeleton_of(sandbox.config);
    add_own(request.own, "/home/sandbox");  // whichever user it has
    if (root.layers.empty()) request.birth = files::DiffRequest::Birth::in_upper;
  }
  for (const char* made : {"/proc", "/sys", "/dev", "/tmp", "/run"}) add_own(request.own, made);
  add_own(request.own, user_of(sandbox.config, root).home);
  add_own(request.own, workdir_of(sandbox.config, root));
  BERTH_TRY(const files::LayerDiff diff, files::diff_layers(request));
  Changes out{.is_truncated = diff.truncated};
  for (const files::LayerDifference& one : diff.differences) {
    out.changes.push_back({.path = one.path,
                           .change = kind_of(one.change),
                           .kind = kind_of(one.entry),
                           .bytes = static_cast<std::int64_t>(one.bytes)});
  }
  return out;
}

}  // namespace berth::places
