#include "places/agent_home_folder.hpp"

#include "base/files.hpp"
#include "base/owned.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace berth::places {
namespace {

// A file that root in a sandbox makes there belongs to this unprivileged user outside, so its
// set-user-id bit grants nothing.
constexpr uid_t nobody = 65534;

}  // namespace

Result<std::string> make_home_folder(const std::string& root, const core::AgentHomeId& id,
                                     HomeOwner owner) {
  const std::string around = root + "/" + id.str();
  const std::string path = around + std::string{core::home_inside};
  BERTH_DO(make_directories(around, 0700));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_failure("make", path, errno);
  const Fd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!folder) return io_failure("open", path, errno);
  const bool gives_away = owner == HomeOwner::without && ::geteuid() == 0;
  if (gives_away && ::fchown(folder.get(), nobody, nobody) != 0) {
    return io_failure("give away", path, errno);
  }
  return path;
}

}  // namespace berth::places
