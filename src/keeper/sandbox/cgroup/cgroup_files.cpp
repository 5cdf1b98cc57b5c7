#include "keeper/sandbox/cgroup/cgroup_files.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace berth::keeper::sandbox {
namespace {

constexpr std::size_t group_file_bytes_max = std::size_t{4} << 20;
// Only we make groups in ours; the bound is a safeguard.
constexpr int nesting_max = 8;

bool is_folder(const std::string& path) {
  struct stat file{};
  return ::lstat(path.c_str(), &file) == 0 && S_ISDIR(file.st_mode);
}

// Returns 0, or the errno that explains why it still exists.
int try_to_remove(const std::string& folder, int depth) {
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return 0;
  const int why = errno;
  if (why != EBUSY || depth == nesting_max) return why;
  bool removed = false;
  const std::string prefix = folder + "/";
  for (const std::string& name : names_in(folder).value_or(std::vector<std::string>{})) {
    const std::string inner = prefix + name;
    removed = (is_folder(inner) && try_to_remove(inner, depth + 1) == 0) || removed;
  }
  if (!removed) return why;
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

std::uint64_t sum_behind(std::string_view text, const std::string& sign) {
  std::uint64_t sum = 0;
  for (std::size_t at = text.find(sign); at != std::string_view::npos;
       at = text.find(sign, at + 1)) {
    sum += number_in(text.substr(at + sign.size())).value_or(0);
  }
  return sum;
}

}  // namespace

int write_group_file(const std::string& path, std::string_view text) {
  const Fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

std::string read_group_file(const std::string& path) {
  const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return {};
  return read_fd(file.get(), group_file_bytes_max, path).value_or("");
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> number_of(const std::string& path) {
  return number_in(read_group_file(path));
}

std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) {
      return number_in(line.substr(key.size() + 1));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

std::uint64_t summed_number(std::string_view text, std::string_view key) {
  return sum_behind(text, " " + std::string{key} + "=");
}

std::uint64_t summed_lines(std::string_view text, std::string_view key) {
  return sum_behind(text, " " + std::string{key} + " ");
}

void await_change(int events, std::chrono::milliseconds step) {
  pollfd watched{.fd = events, .events = POLLPRI, .revents = 0};
  ::poll(&watched, 1, static_cast<int>(step.count()));
  if (events < 0) return;
  // The event remains pending until the file is read.
  std::array<char, 256> text{};
  [[maybe_unused]] const ssize_t size = ::pread(events, text.data(), text.size(), 0);
}

Result<> remove_group(const std::string& folder, std::chrono::milliseconds limit) {
  int why = 0;
  const bool removed =
      wait_until(-1, limit, [&] { return (why = try_to_remove(folder, 0)) != EBUSY; });
  if (removed && why == 0) return {};
  return io_failure("rmdir", folder, why);
}

void GroupFolderKind::dispose(const std::string& folder) noexcept {
  write_group_file(folder + "/cgroup.kill", "1");
  ::rmdir(folder.c_str());  // if still busy, sweep_leftovers() finds it by its name
}

Result<GroupFolder> make_group_folder(std::string folder) {
  if (::mkdir(folder.c_str(), 0755) != 0) return io_failure("mkdir", folder, errno);
  return GroupFolder{std::move(folder)};
}

}  // namespace berth::keeper::sandbox
