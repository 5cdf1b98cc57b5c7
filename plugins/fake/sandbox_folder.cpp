#include "fake/sandbox_folder.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "base/remove_tree.hpp"
#include "fake/held_command.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>

namespace berth::fake {
namespace {

constexpr std::string_view prefix = "paperclip-fake-sandbox-";
constexpr std::size_t name_bytes_max = 255;

}  // namespace

Result<SandboxFolder> SandboxFolder::of_lease(const std::string& lease_id) {
  const std::string name =
      std::string{prefix} +
      base64url({reinterpret_cast<const unsigned char*>(lease_id.data()), lease_id.size()});
  if (name.size() > name_bytes_max) {
    return fail(Errc::validation_failed,
                "lease " + lease_id.substr(0, 64) + "...: its id is too long",
                "use run and environment ids that are UUIDs");
  }
  // TMPDIR if it is set: a worker's box without namespaces has no other temporary folder.
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  return SandboxFolder{(error ? "/tmp" : temporary.string()) + "/" + name};
}

bool SandboxFolder::is_ours() const {
  struct stat found{};
  return ::lstat(path_.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::geteuid();
}

bool SandboxFolder::is_there() const {
  return is_ours();
}

Result<SandboxFolder::Made> SandboxFolder::make() const {
  const bool made = ::mkdir(path_.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return io_failure("mkdir", path_, errno);
  // Any user may create names in /tmp: an existing folder counts only if it is ours.
  if (!is_ours()) {
    return fail(Errc::lease_acquire_failed, path_ + ": belongs to another user", "remove it");
  }
  return made ? Made::now : Made::was_there;
}

Result<> SandboxFolder::remove() const {
  if (!is_ours()) return {};
  BERTH_DO(stop_keepers(keepers()));
  return remove_tree(path_);
}

}  // namespace berth::fake
