#include "places/ssh/control_folder.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/random.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>

namespace berth::places::ssh {
namespace {

constexpr const char* lock_file = "lock";
constexpr std::size_t folder_name_bytes = 6;
constexpr std::size_t command_line_bytes_max = std::size_t{1} << 20;
// ssh creates its socket under a name that is longer than the final one, by a dot and 16
// characters.
constexpr std::size_t draft_suffix_bytes = 17;
constexpr std::size_t name_in_folder_bytes = 12;  // "/123456" with room to spare

// Succeeds if the lock is free: then the server that made the folder has ended.
Fd take_lock(const std::string& folder) {
  Fd lock{
      ::open((folder + "/" + lock_file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return lock;
}

// Found by their arguments, which contain the folder: a pid in a file may have been reused.
void end_processes_of(const std::string& folder) {
  const Result<std::vector<std::string>> names = names_in("/proc");
  if (!names) return;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    if (pid == ::getpid()) continue;
    const Result<std::string> line =
        read_file("/proc/" + name + "/cmdline", command_line_bytes_max);
    const bool is_ssh = line && line->contains("ssh") && line->contains("=" + folder + "/");
    if (is_ssh) ::kill(pid, SIGKILL);
  }
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void remove_leftovers(const std::string& root) {
  const Result<std::vector<std::string>> names = names_in(root);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string folder = std::string{root}.append("/").append(name);
    const Fd lock = take_lock(folder);
    if (!lock) continue;
    end_processes_of(folder);
    remove_folder(folder);
    log::info("ssh.leftovers_removed", {{"folder", folder}});
  }
}

// ssh expands '%', '$' and '~' in file names, and splits them at blanks.
bool suits_ssh(const std::string& root) {
  const std::size_t longest =
      root.size() + 1 + 2 * folder_name_bytes + name_in_folder_bytes + draft_suffix_bytes;
  return longest < sizeof(sockaddr_un::sun_path) &&
         std::ranges::all_of(
             root,
             [](unsigned char c) {
               return std::isalnum(c) != 0 ||
                      std::string_view{"/._-+,@:"}.contains(static_cast<char>(c));
             });
}

std::string substitute_for(const std::string& root) {
  constexpr std::size_t enough = 12;
  return "/tmp/berth-" + std::to_string(::geteuid()) + "-" + sha256_hex(root).substr(0, enough);
}

// Other users must not be able to replace our socket.
Result<> make_private(const std::string& root) {
  BERTH_DO(make_directories(root, 0700));
  struct stat found{};
  if (::lstat(root.c_str(), &found) != 0) return io_failure("stat", root, errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
    return fail(Errc::config_invalid, root + ": is not a folder that only this user may enter",
                "remove it, or choose another folder for the sockets of ssh");
  }
  return {};
}

}  // namespace

void FileKind::dispose(const Raw& path) noexcept {
  ::unlink(path.c_str());
}

Result<ControlFolder> ControlFolder::open(const std::string& wanted_root) {
  const std::string root = suits_ssh(wanted_root) ? wanted_root : substitute_for(wanted_root);
  BERTH_DO(make_private(root));
  // Held until the new folder has its own lock: another server that starts now would treat a folder
  // without one as a leftover.
  const Fd start{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!start || ::flock(start.get(), LOCK_EX) != 0) return io_failure("lock", root, errno);
  remove_leftovers(root);
  SystemRandom random;
  std::array<unsigned char, folder_name_bytes> name{};
  random.fill(name);
  std::string path = root + "/" + hex(name);
  if (::mkdir(path.c_str(), 0700) != 0) return io_failure("mkdir", path, errno);
  Fd lock = take_lock(path);
  if (!lock) return io_failure("lock", path, errno);
  return ControlFolder{std::move(path), std::move(lock)};
}

ControlFolder::~ControlFolder() {
  if (lock_) remove_folder(path_);
}

std::string ControlFolder::next_socket() {
  return path_ + "/" + std::to_string(++last_);
}

Result<ShortLivedFile> ControlFolder::write(std::string_view text) {
  const std::string path = path_ + "/" + std::to_string(++last_);
  ShortLivedFile file{path};
  const Fd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!fd) return io_failure("create", path, errno);
  // Neither synced nor renamed: it is not read before this returns, nor after a crash.
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_failure("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return file;
}

}  // namespace berth::places::ssh
