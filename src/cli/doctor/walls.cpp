#include "cli/doctor/walls.hpp"

#include "base/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

namespace berth::cli::doctor {
namespace {

using core::Attacker;
using core::Wall;
using core::WallState;

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// "postgresql://user:password@HOST:5432/name?sslmode=require"
std::string host_in(std::string_view url) {
  const std::size_t scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?"));
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos)
    rest.remove_prefix(at + 1);
  if (rest.starts_with('[')) return std::string{rest.substr(1, rest.find(']') - 1)};
  return std::string{rest.substr(0, rest.find(':'))};
}

std::string parameter_in(std::string_view url, std::string_view name) {
  const std::size_t begin = url.find('?');
  if (begin == std::string_view::npos) return {};
  for (std::string_view rest = url.substr(begin + 1); !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return std::string{pair.substr(name.size() + 1)};
    }
  }
  return {};
}

// Entries of the home folder that plugin users may reach; all others must be closed to them.
bool is_for_plugins(std::string_view name) {
  return name == "plugins" || name == "plugin-exchange" || name == "plugin-files";
}

std::optional<Wall> check_database_wall(const Machine& machine) {
  // A database file in the home folder is checked with the home folder.
  if (machine.settings.database.starts_with("sqlite:")) return std::nullopt;
  const char* const mode = std::getenv("PGSSLMODE");
  return judge_database(machine.settings.database, mode == nullptr ? "" : mode);
}

bool has(const keeper::Confined& made, std::string_view feature) {
  return std::ranges::find(made.features, feature) != made.features.end();
}

const keeper::Missing* missing_in(const keeper::Confined& made, std::string_view feature) {
  const auto found = std::ranges::find(made.missing, feature, &keeper::Missing::feature);
  return found == made.missing.end() ? nullptr : &*found;
}

// A feature that the sandbox has, or the reason for its absence.
Wall judge_feature(const keeper::Confined& made, std::string_view feature, Wall wall,
                   std::string there, WallState without) {
  if (has(made, feature)) return stands(std::move(wall), std::move(there));
  const keeper::Missing* const missing = missing_in(made, feature);
  const std::string name{feature};
  return falls(std::move(wall), without,
               missing != nullptr ? "Sandboxes lack " + name + ": " + missing->reason + "."
                                  : "Sandboxes on this machine lack " + name + ".",
               missing != nullptr ? missing->remedy : "run 'berth sandbox test' for details");
}

Wall judge_level(const keeper::Confined& made) {
  Wall wall{.key = "sandbox", .title = "Sandbox isolation", .against = Attacker::agent};
  const std::string level{name_of(made.level)};
  using keeper::sandbox::Level;
  if (made.level >= Level::standard) {
    return stands(std::move(wall),
                  "Sandboxes on this machine have the isolation level " + level + ".");
  }
  std::string remedy;
  for (const keeper::Missing& one : made.missing) {
    if (!one.remedy.empty() && !remedy.contains(one.remedy)) {
      remedy += (remedy.empty() ? "" : "; ") + one.remedy;
    }
  }
  return falls(std::move(wall), WallState::weak,
               "Sandboxes on this machine have only the isolation level " + level + ".",
               std::move(remedy));
}

Wall judge_limits(const keeper::Confined& made) {
  Wall wall{.key = "sandbox_limits", .title = "Sandbox limits", .against = Attacker::agent};
  if (has(made, "cgroup-limits")) {
    return stands(std::move(wall), "Control groups enforce memory and process limits.");
  }
  std::string lacking;
  std::string remedy;
  for (const keeper::Missing& one : made.missing) {
    if (one.feature != "memory" && one.feature != "pids" && one.feature != "cpu") continue;
    lacking += (lacking.empty() ? "" : ", ") + one.feature;
    if (remedy.empty()) remedy = one.remedy;
  }
  return falls(std::move(wall), WallState::open,
               "No control group enforces these limits: " + (lacking.empty() ? "all" : lacking) +
                   ". One sandbox can exhaust the machine.",
               remedy.empty() ? "delegate a control group to the server" : std::move(remedy));
}

}  // namespace

Wall judge_callers(Mode mode, TrustedUsers trusted, unsigned server_user) {
  Wall wall{.key = "callers", .title = "API callers", .against = Attacker::local_user};
  if (mode == Mode::authenticated) {
    return stands(std::move(wall), "Every caller of the API needs a key.");
  }
  if (trusted == TrustedUsers::own) {
    return stands(std::move(wall),
                  "The kernel names the user of each caller, and only root and the server's own "
                  "user are the operator.");
  }
  if (makes_everybody_root(mode, trusted, server_user)) {
    return falls(std::move(wall), WallState::open,
                 "In the mode local_trusted every user of this machine runs commands as root.",
                 std::string{root_remedy});
  }
  return falls(std::move(wall), WallState::weak,
               "In the mode local_trusted every user of this machine is the operator.",
               "start the server with --trusted-users own, or with --mode authenticated");
}

Wall judge_listener(const Settings& settings) {
  Wall wall{.key = "listener", .title = "Connections to the server", .against = Attacker::network};
  const Result<HostPort> at = parse_listen(settings.listen);
  const std::string host = at ? at->host : settings.listen;
  if (settings.tls_cert) return stands(std::move(wall), "The server answers over TLS only.");
  if (settings.public_url && settings.public_url->starts_with("http://")) {
    return falls(std::move(wall), WallState::open,
                 "Clients use " + *settings.public_url + ", which is not encrypted.",
                 "set tls_cert and tls_key, or put a proxy with TLS before the server");
  }
  if (is_loopback(host)) {
    return stands(std::move(wall),
                  "The server listens on " + host + ", which only this machine reaches.");
  }
  if (settings.public_url) {
    return falls(
        std::move(wall), WallState::weak,
        "A proxy encrypts the connections, but " + settings.listen + " itself answers without TLS.",
        "listen on 127.0.0.1, or set tls_cert and tls_key");
  }
  return falls(std::move(wall), WallState::open,
               "The server answers on " + settings.listen +
                   " without TLS: keys and output cross the network in the clear.",
               "set tls_cert and tls_key, or listen on 127.0.0.1 behind a proxy with TLS");
}

Wall judge_database(const std::string& url, const std::string& ssl_mode) {
  Wall wall{.key = "database", .title = "Connection to the database", .against = Attacker::network};
  std::string host = parameter_in(url, "host");
  if (host.empty()) host = host_in(url);
  if (host.empty() || host.starts_with('/') || host.starts_with("%2F") || is_loopback(host)) {
    return stands(std::move(wall), "The database is on this machine.");
  }
  std::string mode = parameter_in(url, "sslmode");
  if (mode.empty()) mode = ssl_mode;
  if (mode == "verify-full") {
    return stands(std::move(wall), "The connection to " + host + " is encrypted and verified.");
  }
  const std::string remedy = "add sslmode=verify-full to the database URL";
  if (mode == "require" || mode == "verify-ca") {
    return falls(std::move(wall), WallState::weak,
                 "The connection to " + host + " is encrypted, but sslmode=" + mode +
                     " does not verify the name of the server.",
                 remedy);
  }
  return falls(
      std::move(wall), WallState::open,
      "The connection to " + host + " may be unencrypted: the database URL demands no TLS.",
      remedy);
}

namespace {

// The server creates this file in its home; another user may examine it later.
uid_t server_user(const std::string& home) {
  struct stat found{};
  return ::lstat((home + "/lock").c_str(), &found) == 0 ? found.st_uid : ::geteuid();
}

bool is_of_another_user(const struct stat& found, const std::string& home) {
  return found.st_uid != 0 && found.st_uid != server_user(home);
}

}  // namespace

std::optional<Wall> check_home_files(const Machine& machine) {
  const std::string& home = machine.settings.home;
  Wall wall{.key = "home_files", .title = "Files of the server", .against = Attacker::local_user};
  struct stat found{};
  if (::stat(home.c_str(), &found) != 0) return std::nullopt;
  if (is_of_another_user(found, home)) {
    return falls(
        std::move(wall), WallState::open,
        "User " + std::to_string(found.st_uid) + " owns " + home + " and can replace its files.",
        "chown " + std::to_string(server_user(home)) + " " + home);
  }
  if ((found.st_mode & 022) != 0) {
    return falls(std::move(wall), WallState::open, "Other users can write to " + home + ".",
                 "chmod go-w " + home);
  }
  if ((found.st_mode & 077) == 0) {
    return stands(std::move(wall), "Only the user of the server opens " + home + ".");
  }
  const Result<std::vector<std::string>> names = names_in(home);
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    const std::string path = home + "/" + name;
    if (is_for_plugins(name) || ::lstat(path.c_str(), &found) != 0 || S_ISLNK(found.st_mode))
      continue;
    if ((found.st_mode & 077) == 0) continue;
    return falls(std::move(wall), WallState::open, "Other users can open " + path + ".",
                 "chmod go= " + path);
  }
  return stands(std::move(wall),
                "Database, keys and logs in " + home + " are closed to other users.");
}

std::optional<Wall> check_key_file(const Machine& machine) {
  const std::string& path = machine.settings.master_key_file;
  Wall wall{.key = "key_file", .title = "Master key file", .against = Attacker::local_user};
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  if ((found.st_mode & 077) != 0 || is_of_another_user(found, machine.settings.home)) {
    return falls(std::move(wall), WallState::open, "Other users can read " + path + ".",
                 "chmod 600 " + path + ", then rotate the key with 'berth secret rekey'");
  }
  return stands(std::move(wall), "Only its owner reads " + path + ".");
}

std::vector<Wall> judge_sandbox(const Result<keeper::Confined>& made) {
  if (!made) {
    return {falls({.key = "sandbox", .title = "Sandbox isolation", .against = Attacker::agent},
                  WallState::open,
                  "Sandboxes cannot be made on this machine: " + made.error().message + ".",
                  made.error().remedy.empty() ? "see 'berth doctor'" : made.error().remedy)};
  }
  using keeper::sandbox::Level;
  const bool is_minimal = made->level == Level::minimal;
  return {
      judge_level(*made),
      judge_feature(*made, "uid-range",
                    {.key = "sandbox_ids", .title = "Sandbox users", .against = Attacker::agent},
                    "Each sandbox has a range of user ids that nothing else on this machine has.",
                    is_minimal ? WallState::open : WallState::weak),
      judge_limits(*made),
      judge_feature(
          *made, "seccomp",
          {.key = "sandbox_seccomp", .title = "Sandbox system calls", .against = Attacker::agent},
          "A seccomp filter refuses dangerous system calls.", WallState::open),
      judge_feature(
          *made, "landlock",
          {.key = "sandbox_landlock", .title = "Sandbox file access", .against = Attacker::agent},
          "Landlock confines file access a second time.", WallState::weak)};
}

std::vector<Wall> examine_walls(const Machine& machine) {
  const Settings& settings = machine.settings;
  std::vector<Wall> walls{judge_callers(settings.mode, settings.trusted_users, ::geteuid()),
                          judge_listener(settings)};
  for (const auto check : {check_database_wall, check_home_files, check_key_file}) {
    if (std::optional<Wall> wall = check(machine)) walls.push_back(*std::move(wall));
  }
  if (const auto made = try_sandbox(machine)) {
    std::ranges::move(judge_sandbox(*made), std::back_inserter(walls));
  }
  return walls;
}

}  // namespace berth::cli::doctor
