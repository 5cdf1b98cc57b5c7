#include "cli/profiles.hpp"

#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "cli/objects.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace berth::cli {
namespace {

constexpr std::size_t profile_bytes_max = 1 << 20;

std::string variable_value(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

}  // namespace

std::string Profiles::file_of(const Variables& variables) {
  std::string folder = variable_value(variables, "XDG_CONFIG_HOME");
  if (folder.empty()) folder = variable_value(variables, "HOME") + "/.config";
  return folder + "/berth/profiles.json";
}

Result<Profiles> Profiles::read(const std::string& file) {
  Profiles profiles{file};
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return profiles;
    return io_failure("look at", file, errno);
  }
  if ((found.st_mode & 077) != 0) {
    return fail(Errc::config_invalid, file + ": others may read it, and it holds tokens",
                "chmod 600 " + file);
  }
  BERTH_TRY(const std::string text, read_file(file, profile_bytes_max));
  const Result<bj::value> value = parse_json(text);
  const auto list = value ? peek<bj::object>(*value, "profiles") : std::nullopt;
  if (!list) {
    return fail(Errc::config_invalid, file + ": is not a list of profiles",
                "remove it and use 'berth login' again");
  }
  profiles.current_ = text_of(*value, "current");
  for (const auto& [name, profile] : *list) {
    if (profile.is_object()) profiles.profiles_[name] = profile.get_object();
  }
  return profiles;
}

Result<std::optional<Profile>> Profiles::find(const std::string& name) const {
  const std::string& wanted = name.empty() ? current_ : name;
  if (wanted.empty()) return std::nullopt;
  const auto found = profiles_.find(wanted);
  if (found == profiles_.end()) {
    if (name.empty()) return std::nullopt;
    return fail(Errc::bad_request, "there is no profile '" + name + "'",
                "make it: berth login URL --profile " + name);
  }
  Profile profile{.name = wanted,
                  .url = text_of(found->second, "url"),
                  .company = text_of(found->second, "company"),
                  .token = {}};
  if (const std::string token = text_of(found->second, "token"); !token.empty()) {
    profile.token.emplace(token);
  }
  return profile;
}

void Profiles::put(const Profile& profile) {
  bj::object fields{{"url", profile.url}};
  if (!profile.company.empty()) fields["company"] = profile.company;
  if (profile.token) fields["token"] = bj::string(profile.token->reveal());
  profiles_[profile.name] = std::move(fields);
  current_ = profile.name;
}

Result<> Profiles::remove(const std::string& name) {
  const std::string doomed = name.empty() ? current_ : name;
  if (profiles_.erase(doomed) == 0) {
    return fail(Errc::bad_request,
                name.empty() ? "you are not logged in" : "there is no profile '" + name + "'");
  }
  if (current_ == doomed) current_ = profiles_.empty() ? "" : profiles_.begin()->first;
  return {};
}

Result<> Profiles::write() const {
  BERTH_DO(make_directories(parent_of(file_), 0700));
  bj::object list;
  for (const auto& [name, fields] : profiles_) list[name] = fields;
  return replace_file(
      file_, encode_text(bj::object{{"current", current_}, {"profiles", list}}) + "\n", 0600);
}

bj::array Profiles::rows() const {
  bj::array rows;
  for (const auto& [name, fields] : profiles_) {
    rows.push_back(bj::object{{"name", name},
                              {"url", text_of(fields, "url")},
                              {"company", text_of(fields, "company")},
                              {"current", name == current_ ? "current" : ""}});
  }
  return rows;
}

}  // namespace berth::cli
