#include "keeper/sandbox/kept_folder.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "base/remove_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace berth::keeper::sandbox {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t mode_bits = 07777;

struct Part {
  std::string name;
  struct stat seen = {};
};

// The path from the tray to the folder. A root of layers is written to a folder in the tray.
std::vector<Part> way_to(const Plan& plan) {
  std::vector<Part> way;
  if (!plan.layers.empty()) way.push_back({.name = "upper"});
  const std::string& path = plan.kept_folder;
  for (std::size_t at = 1; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    way.push_back({.name = path.substr(at, end - at)});
    at = end + 1;
  }
  return way;
}

// The parent of the last part, or an invalid descriptor if the path does not lead to a folder.
Fd parent_on(int tray, std::vector<Part>& way) {
  Fd folder{::openat(tray, ".", folder_flags)};
  for (std::size_t i = 0; folder && i < way.size(); ++i) {
    const char* name = way[i].name.c_str();
    if (::fstatat(folder.get(), name, &way[i].seen, AT_SYMLINK_NOFOLLOW) != 0) return {};
    if (!S_ISDIR(way[i].seen.st_mode)) return {};
    // A mode can lock an ordinary user out of its own folder.
    if ((way[i].seen.st_mode & S_IRWXU) != S_IRWXU &&
        ::fchmodat(folder.get(), name, 0700, AT_SYMLINK_NOFOLLOW) != 0) {
      return {};
    }
    if (i + 1 < way.size()) folder = Fd{::openat(folder.get(), name, folder_flags)};
  }
  return folder;
}

// The root of an overlay becomes the keeper's own again; the rest keeps its owners and modes. The
// mode is set afterwards, because the keeper's umask would reduce it.
int make_part(int folder, const Part& part, bool is_upper) {
  if (::mkdirat(folder, part.name.c_str(), 0755) != 0) return errno;
  if (is_upper) return ::fchmodat(folder, part.name.c_str(), 0755, 0) != 0 ? errno : 0;
  if (::fchownat(folder, part.name.c_str(), part.seen.st_uid, part.seen.st_gid,
                 AT_SYMLINK_NOFOLLOW) != 0) {
    return errno;
  }
  return ::fchmodat(folder, part.name.c_str(), part.seen.st_mode & mode_bits, 0) != 0 ? errno : 0;
}

int put_back(int tray, const std::string& kept, const std::vector<Part>& way, bool has_upper) {
  Fd folder{::openat(tray, ".", folder_flags)};
  for (std::size_t i = 0; folder && i + 1 < way.size(); ++i) {
    const bool is_upper = has_upper && i == 0;
    if (const int error_number = make_part(folder.get(), way[i], is_upper)) return error_number;
    folder = Fd{::openat(folder.get(), way[i].name.c_str(), folder_flags)};
  }
  if (!folder) return errno;
  const Part& last = way.back();
  if (::renameat(tray, kept.c_str(), folder.get(), last.name.c_str()) != 0) return errno;
  const mode_t mode = last.seen.st_mode & mode_bits;
  return ::fchmodat(folder.get(), last.name.c_str(), mode, 0) != 0 ? errno : 0;
}

// The top of a plain tray is the sandbox's root directory, which root inside may have changed.
int reset_top(const Fd& top) {
  if (::fchown(top.get(), ::geteuid(), ::getegid()) != 0) return errno;
  return ::fchmod(top.get(), 0755) != 0 ? errno : 0;
}

}  // namespace

Result<> keep_only_folder(int tray, const Plan& plan) {
  constexpr const char* shown = "the files of a sandbox";
  std::vector<Part> way = way_to(plan);
  SystemRandom random;
  const std::string kept = "kept-" + random_base64url(random, 9);
  const Fd parent = parent_on(tray, way);
  if (parent && ::renameat(parent.get(), way.back().name.c_str(), tray, kept.c_str()) != 0) {
    return io_failure("move", shown, errno);
  }
  Fd top{::openat(tray, ".", folder_flags)};
  if (!top) return io_failure("open", shown, errno);
  if (const int error_number = reset_top(top)) return io_failure("change", shown, error_number);
  BERTH_DO(empty_folder(std::move(top), shown, kept));
  if (!parent) return {};
  if (const int error_number = put_back(tray, kept, way, !plan.layers.empty())) {
    return io_failure("move", shown, error_number);
  }
  return {};
}

}  // namespace berth::keeper::sandbox
