#include "images/image_user.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "files/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

namespace berth::images {
namespace {

constexpr std::size_t accounts_bytes_max = std::size_t{1} << 20;
constexpr std::size_t groups_max = 64;
constexpr std::uint32_t user_id_max = 65535;  // the ids of a sandbox

using Fields = std::vector<std::string_view>;

Fields split(std::string_view text, char at) {
  Fields parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Only digits, whatever their value: "00" is a number, "-1" is not.
std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (text.empty() || stopped != end || problem != std::errc{}) return std::nullopt;
  return value;
}

Result<std::uint32_t> id_in(std::uint64_t number, std::string_view what) {
  if (number <= user_id_max) return static_cast<std::uint32_t>(number);
  return fail(Errc::image_invalid, std::string{what} + " " + std::to_string(number) +
                                       " is none that a sandbox has: they end at 65535");
}

// A line without this shape is ignored.
struct PasswdLine {
  std::string_view name;
  std::uint64_t uid;
  std::uint64_t gid;
  std::string_view home;
};
std::optional<PasswdLine> passwd_line(std::string_view line) {
  const Fields fields = split(line, ':');
  if (fields.size() < 4 || fields[0].empty()) return std::nullopt;
  const auto uid = number_in(fields[2]);
  const auto gid = number_in(fields[3]);
  if (!uid || !gid) return std::nullopt;
  return PasswdLine{.name = fields[0],
                    .uid = *uid,
                    .gid = *gid,
                    .home = fields.size() > 5 ? fields[5] : std::string_view{}};
}

struct GroupLine {
  std::string_view name;
  std::uint64_t gid;
  Fields members;
};
std::optional<GroupLine> group_line(std::string_view line) {
  const Fields fields = split(line, ':');
  if (fields.size() < 3 || fields[0].empty()) return std::nullopt;
  const auto gid = number_in(fields[2]);
  if (!gid) return std::nullopt;
  return GroupLine{.name = fields[0],
                   .gid = *gid,
                   .members = fields.size() > 3 ? split(fields[3], ',') : Fields{}};
}

template <class Line, class Fits>
std::optional<Line> first_line(std::string_view text,
                               std::optional<Line> (*parse)(std::string_view), Fits fits) {
  for (const std::string_view line : split(text, '\n')) {
    std::optional<Line> parsed = parse(line);
    if (parsed && fits(*parsed)) return parsed;
  }
  return std::nullopt;
}

// It is created for the user if it is missing, so a folder must be possible there.
std::string usable_home(std::string_view home) {
  if (!home.starts_with('/') || home.contains('\0')) return {};
  while (home.ends_with('/')) home.remove_suffix(1);
  if (home.empty()) return {};
  const Fields parts = split(home.substr(1), '/');
  const auto is_odd = [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  };
  if (std::ranges::any_of(parts, is_odd)) return {};
  for (const std::string_view own : {"proc", "dev", "sys"}) {
    if (parts.front() == own) return {};
  }
  return std::string{home};
}

Result<std::vector<std::uint32_t>> groups_of(std::string_view user, std::uint32_t gid,
                                             std::string_view text) {
  std::vector<std::uint32_t> groups;
  for (const std::string_view line : split(text, '\n')) {
    const std::optional<GroupLine> group = group_line(line);
    if (!group || std::ranges::find(group->members, user) == group->members.end()) continue;
    BERTH_TRY(const std::uint32_t id, id_in(group->gid, "group"));
    const bool is_known = id == gid || std::ranges::find(groups, id) != groups.end();
    if (!is_known) groups.push_back(id);
  }
  if (groups.size() <= groups_max) return groups;
  return fail(Errc::image_invalid, "it is in more than " + std::to_string(groups_max) + " groups");
}

Result<std::uint32_t> find_group(std::string_view spelled, std::string_view text) {
  const auto named = first_line<GroupLine>(
      text, group_line, [&](const GroupLine& line) { return line.name == spelled; });
  if (named) return id_in(named->gid, "group");
  if (const auto number = number_in(spelled)) return id_in(*number, "group");
  return fail(Errc::image_invalid, "its /etc/group has no group " + in_quotes(spelled));
}

// Empty if it is missing: an image without users can still run as a number.
Result<std::string> read_accounts(int root, const std::string& path) {
  // Must not block on a pipe or device.
  const Fd file{
      files::open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, files::Links::as_inside)};
  if (!file && errno == ENOENT) return std::string{};
  if (!file) return files::store_failure("open", "/" + path, errno);
  struct stat seen{};
  if (::fstat(file.get(), &seen) != 0) return files::store_failure("look at", "/" + path, errno);
  if (!S_ISREG(seen.st_mode)) return fail(Errc::image_invalid, "its /" + path + " is not a file");
  return read_fd(file.get(), accounts_bytes_max, "/" + path);
}

Result<ImageUser> look_up(std::string_view spelled, const std::string& root) {
  const Fd folder{::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!folder) return files::store_failure("open", root, errno);
  Accounts accounts;
  BERTH_TRY(accounts.passwd, read_accounts(folder.get(), "etc/passwd"));
  BERTH_TRY(accounts.group, read_accounts(folder.get(), "etc/group"));
  return find_user(spelled, accounts);
}

}  // namespace

Result<ImageUser> find_user(std::string_view spelled, const Accounts& accounts) {
  const std::size_t colon = spelled.find(':');
  const std::string_view name = spelled.substr(0, colon);
  std::optional<PasswdLine> known = first_line<PasswdLine>(
      accounts.passwd, passwd_line, [&](const PasswdLine& line) { return line.name == name; });
  const std::optional<std::uint64_t> number = number_in(name);
  if (!known && !number) {
    return fail(Errc::image_invalid, "its /etc/passwd has no user " + in_quotes(name));
  }
  if (!known) {
    known = first_line<PasswdLine>(accounts.passwd, passwd_line,
                                   [&](const PasswdLine& line) { return line.uid == *number; });
  }
  ImageUser user;
  BERTH_TRY(user.uid, id_in(known ? known->uid : *number, "user"));
  if (known) user.home = usable_home(known->home);
  if (colon != std::string_view::npos) {
    BERTH_TRY(user.gid, find_group(spelled.substr(colon + 1), accounts.group));
    return user;
  }
  // A user that is not in the files is in root's group, which grants no rights by itself.
  if (!known) return user;
  BERTH_TRY(user.gid, id_in(known->gid, "group"));
  BERTH_TRY(user.groups, groups_of(known->name, user.gid, accounts.group));
  return user;
}

Result<ImageUser> user_of(const Image& image, const std::string& root) {
  Result<ImageUser> found = look_up(image.config.user, root);
  if (found) return found;
  const std::string& name = image.names.empty() ? image.digest : image.names.front();
  return fail(Errc::image_invalid,
              "image " + name + ": its user " + in_quotes(image.config.user) +
                  " is not to be had: " + found.error().message,
              "name one: `user: user` or `user: root` in the environment's config, --user with "
              "'berth sandbox run'; or import an image that has it");
}

}  // namespace berth::images
