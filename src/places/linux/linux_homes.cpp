#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "places/agent_home_folder.hpp"
#include "places/linux/linux.hpp"

#include <sys/stat.h>

#include <algorithm>

// Agents' homes, which outlive the sandboxes that use them.
namespace berth::places {
namespace {

// $1 is the home in the image, $2 the agent's. Items larger than 20 MiB are not copied: programs in
// them are found by PATH.
constexpr const char* seed_script = R"sh(
cd "$1" || exit 0
for one in * .[!.]*; do
  [ -e "$one" ] || continue
  size=$(du -sk "$one" | cut -f1)
  [ "$size" -gt 20480 ] || cp -a "$one" "$2"/
done
exit 0)sh";

// In the server's own folder around the home: the agent cannot reach it.
std::string seed_mark(const std::string& root, const core::AgentHomeId& home) {
  return root + "/" + home.str() + "/seeded";
}

bool is_home_there(const std::string& path) {
  struct stat seen{};
  return ::lstat(path.c_str(), &seen) == 0;
}

// If the file system does not support id maps, the sandbox's user may not write.
bool can_use_binds(const keeper::Confined& confined) {
  return std::ranges::find(confined.missing, "idmapped-binds", &keeper::Missing::feature) ==
         confined.missing.end();
}

}  // namespace

Task<std::optional<std::string>> Linux::home_folder(std::optional<core::AgentHomeId> id) {
  if (!id || homes_root_.empty()) co_return std::nullopt;
  BERTH_CO_TRY(std::string path, co_await offload(keepers_.pool(), [root = homes_root_, id = *id] {
                 return make_home_folder(root, id, HomeOwner::without);
               }));
  co_return std::optional{std::move(path)};
}

Task<Linux::Made> Linux::take_with_home(std::string id, Wanted wanted) {
  if (!wanted.home) co_return co_await take(std::move(id), std::move(wanted));
  Result<Made> made = co_await take(id, wanted);
  const bool may_be_minimal = wanted.config.min_isolation == core::Isolation::minimal;
  if (made && can_use_binds(made->confined)) co_return made;
  if (!made && (!may_be_minimal || made.error().code != Errc::sandbox_unavailable)) co_return made;
  if (made) BERTH_CO_DO(co_await remove(id));
  log::warn("sandbox.without_agent_home", {{"sandbox", id}});
  wanted.home.reset();
  co_return co_await take(std::move(id), std::move(wanted));
}

Task<> Linux::seed_home(std::string id, core::AgentHomeId home, std::string from) {
  const std::string mark = seed_mark(homes_root_, home);
  if (is_home_there(mark)) co_return Result<>{};
  const Result<> copied = co_await run_inside(
      id, {"/bin/sh", "-c", seed_script, "sh", from, std::string{agent_home_inside}});
  if (!copied) {
    if (copied.error().code == Errc::cancelled) co_return copied;
    // An image without a shell has nothing to copy.
    log::warn("sandbox.home_not_seeded", {{"sandbox", id}, {"error", copied.error().message}});
  }
  co_return co_await offload(keepers_.pool(), [mark] { return replace_file(mark, "", 0600); });
}

}  // namespace berth::places
