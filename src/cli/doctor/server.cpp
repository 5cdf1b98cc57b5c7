#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "cli/doctor/check.hpp"
#include "cli/doctor/facts.hpp"
#include "cli/net/client.hpp"
#include "cli/objects.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace berth::cli::doctor {
namespace {

constexpr unsigned long long space_wanted = 1ULL << 30;
constexpr unsigned long long space_needed = 64ULL << 20;
constexpr ClientLimits impatient{.connect = std::chrono::milliseconds{2'000},
                                 .answer = std::chrono::milliseconds{5'000}};

std::string failure_reason(int error_number) {
  return io_failure("", "", error_number).error().message.substr(3);
}

// The nearest existing parent: where the home folder would be created.
std::string existing_above(std::string path) {
  while (::access(path.c_str(), F_OK) != 0 && path != "/" && path != ".") path = parent_of(path);
  return path;
}

// The response at the address, if it is a Berth server.
Result<bj::value> ask(const std::string& url, const std::string& path) {
  BERTH_TRY(Endpoint endpoint, parse_endpoint(url));
  const Client client{std::move(endpoint), std::nullopt, impatient};
  BERTH_TRY(Answer answer, client.send({.path = path}));
  return std::move(answer.body);
}

Result<> try_to_bind(const HostPort& at) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &list);
  if (failed != 0) return fail(Errc::listen_failed, ::gai_strerror(failed));
  Result<> bound = fail(Errc::listen_failed, "no address");
  const Fd socket{::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int reuse = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  if (::bind(socket.get(), list->ai_addr, list->ai_addrlen) == 0) {
    bound = {};
  } else {
    bound = fail(Errc::listen_failed, failure_reason(errno));
  }
  ::freeaddrinfo(list);
  return bound;
}

Finding check_sqlite(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) {
      return {"database", Verdict::note, path + " does not exist yet; the first start makes it"};
    }
    return {"database", Verdict::fail, path + ": " + failure_reason(errno),
            "run as the user who owns it, or chown it"};
  }
  if (::access(path.c_str(), R_OK | W_OK) != 0) {
    return {"database", Verdict::fail, path + ": " + failure_reason(errno),
            "run as the user who owns it, or chown it"};
  }
  const Result<std::string> head = [&]() -> Result<std::string> {
    const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    std::string bytes(16, '\0');
    if (!file || ::read(file.get(), bytes.data(), 16) < 0) return io_failure("read", path, errno);
    return bytes;
  }();
  const auto size = static_cast<unsigned long long>(found.st_size);
  if (size > 0 && (!head || !head->starts_with("SQLite format 3"))) {
    return {"database", Verdict::fail, path + " is not an SQLite database",
            "restore it from a backup"};
  }
  // Recent writes are still in the log beside it.
  struct stat log{};
  const auto log_size = ::stat((path + "-wal").c_str(), &log) == 0
                            ? static_cast<unsigned long long>(log.st_size)
                            : 0ULL;
  return {"database", Verdict::ok, "SQLite, " + path + ", " + bytes_text(size + log_size)};
}

}  // namespace

Finding check_configuration(const Machine& machine) {
  if (machine.config_error) {
    return {"configuration", Verdict::fail, machine.config_error->message,
            machine.config_error->remedy};
  }
  return {"configuration", Verdict::ok,
          "every setting is understood; 'berth config show' lists them"};
}

Finding check_home(const Machine& machine) {
  const std::string& home = machine.settings.home;
  const std::string folder = existing_above(home);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return {"home", Verdict::fail,
            home + ": " + folder + " cannot be written: " + failure_reason(errno),
            "name another folder with --home, or chown " + folder};
  }
  const Result<DiskRoom> room = room_on_disk(folder);
  if (!room) return {"home", Verdict::fail, room.error().message, "name another with --home"};
  return judge_home(home + (folder == home ? "" : " (not made yet)"), *room);
}

Finding judge_home(const std::string& home, const DiskRoom& room) {
  const std::string says = home + ", " + bytes_text(room.free_bytes) + " free";
  if (!room.takes_files) {
    return {"home", Verdict::fail, says + ", but no more files: output of commands is lost",
            "remove files from that disk, or give it more inodes; 'df -i' counts them"};
  }
  if (!room.keeps_output()) {
    return {"home", Verdict::fail,
            says + ": output of commands is lost while less than " +
                bytes_text(room.reserve_bytes) + " are free",
            "make room on that disk"};
  }
  if (room.free_bytes < space_needed) {
    return {"home", Verdict::fail, says, "make room on that disk"};
  }
  if (room.free_bytes < space_wanted) {
    return {"home", Verdict::warn, says, "make room on that disk"};
  }
  return {"home", Verdict::ok, says};
}

Finding judge_retention(std::int64_t run_days, std::int64_t log_days) {
  const auto kept = [](std::int64_t days) {
    return days == 0 ? std::string{"for ever"} : "for " + std::to_string(days) + " days";
  };
  const std::string says =
      "finished runs are kept " + kept(run_days) + ", their logs " + kept(log_days);
  if (run_days > 0 || log_days > 0) return {"retention", Verdict::ok, says};
  return {"retention", Verdict::warn, says + ": the disk of the home fills in time",
          "berth settings set runRetentionDays=90 logRetentionDays=30"};
}

std::optional<Finding> check_retention(const Machine& machine) {
  const Result<bj::value> settings = ask(machine.server_url, "/api/instance/settings");
  if (!settings || !settings->is_object()) return std::nullopt;
  const auto days = [&](std::string_view name) {
    return peek<std::int64_t>(*settings, name).value_or(0);
  };
  return judge_retention(days("runRetentionDays"), days("logRetentionDays"));
}

Finding check_master_key(const Machine& machine) {
  const std::string& path = machine.settings.master_key_file;
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) {
      return {"master key", Verdict::note, path + " does not exist yet; the first start makes it",
              "restore it from a backup if this server has secrets already"};
    }
    return {"master key", Verdict::fail, path + ": " + failure_reason(errno),
            "run as the user who owns it"};
  }
  if ((found.st_mode & 077) != 0) {
    return {"master key", Verdict::fail, path + " can be read by others; the server refuses it",
            "chmod 600 " + path};
  }
  if (::geteuid() != 0 && found.st_uid != ::geteuid()) {
    return {"master key", Verdict::fail, path + " belongs to another user",
            "chown " + std::to_string(::geteuid()) + " " + path};
  }
  return {"master key", Verdict::ok, path + ", readable by its owner alone"};
}

Finding check_database(const Machine& machine) {
  const std::string& url = machine.settings.database;
  if (url.starts_with("sqlite:")) return check_sqlite(url.substr(7));
  if (ask(machine.server_url, "/api/health/ready")) {
    return {"database", Verdict::ok, mask_password(url) + ", reached by the running server"};
  }
  return {"database", Verdict::note,
          mask_password(url) + "; whether it answers shows when the server starts",
          "psql '" + mask_password(url) + "' -c 'select 1'"};
}

Finding check_listen(const Machine& machine) {
  const Result<bj::value> health = ask(machine.server_url, "/api/health");
  if (health) {
    return {"server", Verdict::ok,
            machine.server_url + " answers, version " + text_of(*health, "version")};
  }
  const Result<HostPort> at = parse_listen(machine.settings.listen);
  if (!at) return {"server", Verdict::fail, at.error().message, at.error().remedy};
  const Result<> free = try_to_bind(*at);
  if (free) {
    return {"server", Verdict::note, "not running; " + machine.settings.listen + " is free for it",
            "berth serve"};
  }
  return {"server", Verdict::fail,
          machine.settings.listen +
              " is taken by something that is not a Berth server: " + free.error().message,
          "berth serve --listen 127.0.0.1:0, or end what holds it: ss -ltnp"};
}

Finding check_tls(const Machine& machine) {
  const Settings& settings = machine.settings;
  if (!settings.tls_cert || !settings.tls_key) return {"tls", Verdict::note, "not configured"};
  for (const std::string& path : {*settings.tls_cert, *settings.tls_key}) {
    const Result<std::string> text = read_file(path, 1 << 20);
    if (!text)
      return {"tls", Verdict::fail, text.error().message, "make it readable for the server"};
    if (text->find("-----BEGIN ") == std::string::npos) {
      return {"tls", Verdict::fail, path + " is not a PEM file", "convert it with openssl"};
    }
  }
  struct stat found{};
  if (::stat(settings.tls_key->c_str(), &found) == 0 && (found.st_mode & 007) != 0) {
    return {"tls", Verdict::warn, *settings.tls_key + " can be read by everybody",
            "chmod 640 " + *settings.tls_key};
  }
  return {"tls", Verdict::ok, *settings.tls_cert};
}

Finding check_trust(const Machine& machine) {
  const Settings& settings = machine.settings;
  return judge_trust(settings.mode, settings.trusted_users, ::geteuid());
}

Finding judge_trust(Mode mode, TrustedUsers trusted, unsigned server_user) {
  if (makes_everybody_root(mode, trusted, server_user)) {
    return {"trust", Verdict::warn,
            "in the mode local_trusted a server of root runs commands of every user of this "
            "machine as root",
            std::string{root_remedy}};
  }
  if (mode == Mode::authenticated) {
    return {"trust", Verdict::ok, "authenticated: who calls needs a key"};
  }
  return {"trust", Verdict::note,
          trusted == TrustedUsers::all
              ? "local_trusted: every user of this machine is the operator"
              : "local_trusted: root and the server's own user are the operator"};
}

std::vector<Finding> judge_kept(const bj::array& companies) {
  std::vector<Finding> findings;
  for (const bj::value& company : companies) {
    const auto kept = peek<bj::array>(company, "keptAllowances");
    if (!kept || kept->empty()) continue;
    std::string listed;
    std::string words;
    for (const bj::value& each : *kept) {
      std::string word = each.is_string() ? std::string{each.get_string()} : std::string{};
      std::ranges::replace(word, '_', '-');
      listed += (listed.empty() ? "" : ", ") + word;
      words += " " + word;
    }
    const std::string name = text_of(company, "name");
    findings.push_back({"company", Verdict::note,
                        in_quotes(name) + " kept from before the upgrade: " + listed,
                        "berth company forbid " + in_quotes(name) + words +
                            ", or 'company allow' to decide for it"});
  }
  return findings;
}

}  // namespace berth::cli::doctor
