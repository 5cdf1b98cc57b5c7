#include "cli/context.hpp"

#include "base/files.hpp"
#include "cli/profiles.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::cli {
namespace {

constexpr std::string_view default_url = "http://127.0.0.1:3100";
constexpr std::size_t small_file_bytes = 65536;
constexpr std::int64_t named_max = 10'000;  // rows to search for a name
constexpr std::int64_t recent_max = 200;

// The file that a running server leaves in its home folder.
struct ServerNote {
  std::string url;
  std::optional<std::int64_t> pid;
};
BOOST_DESCRIBE_STRUCT(ServerNote, (), (url, pid))

std::string variable(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// `last` is the newest run, and the newest of several runs with one name wins. Recent runs are
// searched first, because there may be very many.
Result<bj::value> find_run(const Client& server, const std::string& path,
                           const std::string& named) {
  constexpr std::size_t telling = 8;  // unlikely to match by chance
  BERTH_TRY(const bj::array recent, server.list(path, named == "last" ? 1 : recent_max));
  if (named == "last") {
    if (!recent.empty()) return recent.front();
    return fail(Errc::run_not_found, "there is no run yet", "start one: berth run uname -a");
  }
  const Result<bj::array> called = server.list(path + "?name=" + url_encoded(named), 1);
  // A server without support for names rejects the query or returns something else.
  const bool has_name = called && !called->empty() && text_of(called->front(), "name") == named;
  if (has_name) return called->front();
  Result<bj::value> found = choose(recent, named, run_kind());
  if (found && named.size() >= telling) return found;
  if (!found && found.error().code != Errc::run_not_found) return found;
  if (recent.size() < recent_max) return found;
  BERTH_TRY(const bj::array all, server.list(path, named_max));
  return choose(all, named, run_kind());
}

// The active profile, if any: the named one, else that of the last login. With a named home folder,
// that folder's server is used instead.
Result<std::optional<Profile>> active_profile(const GlobalFlags& flags,
                                              const Variables& variables) {
  std::string name = flags.profile;
  if (name.empty()) name = variable(variables, "BERTH_PROFILE");
  const bool has_home =
      flags.settings.contains("home") || !variable(variables, "BERTH_HOME").empty();
  if (name.empty() && has_home) return std::nullopt;
  BERTH_TRY(const Profiles profiles, Profiles::read(Profiles::file_of(variables)));
  return profiles.find(name);
}

// The server's home folder from "/srv/berth, 12 GB free", if it is a folder on this machine. A
// server on another machine may have a folder with the same name, but its note is not here.
std::string home_in(const bj::value& findings) {
  if (!findings.is_array()) return {};
  for (const bj::value& finding : findings.get_array()) {
    if (text_of(finding, "check") != "home") continue;
    const std::string says = text_of(finding, "says");
    for (std::size_t at = says.find(", "); says.starts_with('/') && at != std::string::npos;
         at = says.find(", ", at + 1)) {
      const std::string home = says.substr(0, at);
      if (::access((home + "/server.json").c_str(), R_OK) == 0) return home;
    }
  }
  return {};
}

bool names_server(const GlobalFlags& flags, const Variables& variables) {
  return !flags.url.empty() || !variable(variables, "BERTH_URL").empty() ||
         !variable(variables, "BERTH_API_URL").empty();
}

}  // namespace

Result<Discovered> discover_server(const GlobalFlags& flags, const Variables& variables,
                                   const std::string& home) {
  if (!flags.url.empty()) return Discovered{flags.url, "--url"};
  // The second is set for a run's processes: there the CLI uses the run's server.
  for (const char* name : {"BERTH_URL", "BERTH_API_URL"}) {
    if (std::string url = variable(variables, name); !url.empty()) {
      return Discovered{std::move(url), name};
    }
  }
  BERTH_TRY(const std::optional<Profile> profile, active_profile(flags, variables));
  if (profile) return Discovered{profile->url, "profile '" + profile->name + "'"};
  const std::string path = home + "/server.json";
  if (::access(path.c_str(), R_OK) != 0) return Discovered{std::string{default_url}, "default"};
  BERTH_TRY(const std::string text, read_file(path, small_file_bytes));
  const Result<ServerNote> note = decode_text<ServerNote>(text, UnknownKeys::ignore);
  if (!note) {
    return fail(Errc::config_invalid, path + ": " + note.error().message,
                "remove the file; the server writes it anew when it starts");
  }
  return Discovered{note->url, path};
}

Result<std::optional<Secret>> discover_token(const GlobalFlags& flags, const Variables& variables,
                                             const std::string& home) {
  if (!flags.token.empty()) return Secret{flags.token};
  for (const char* name : {"BERTH_TOKEN", "BERTH_API_KEY"}) {
    if (const std::string token = variable(variables, name); !token.empty()) return Secret{token};
  }
  // A token is sent only to the server that it was given for.
  if (!names_server(flags, variables)) {
    BERTH_TRY(std::optional<Profile> profile, active_profile(flags, variables));
    if (profile) return std::move(profile->token);
  }
  const std::string path = home + "/admin.token";
  if (::access(path.c_str(), R_OK) != 0) return std::nullopt;
  BERTH_TRY(std::string text, read_file(path, small_file_bytes));
  const std::size_t end = text.find_last_not_of(" \r\n\t");
  Secret token{std::string_view{text}.substr(0, end == std::string::npos ? 0 : end + 1)};
  ::explicit_bzero(text.data(), text.size());
  if (token.empty()) return std::nullopt;
  return token;
}

Context::Context(Console& console, GlobalFlags flags, Config config, Printer printer)
    : console_(console), flags_(std::move(flags)), config_(std::move(config)), printer_(printer) {}

Result<const Client*> Context::client() {
  if (client_ != nullptr) return client_.get();
  const std::string& home = config_.settings.home;
  BERTH_TRY(const Discovered at, discover_server(flags_, console_.variables, home));
  BERTH_TRY(Endpoint endpoint, parse_endpoint(at.url));
  BERTH_TRY(std::optional<Secret> token, discover_token(flags_, console_.variables, home));
  if (token && token->reveal().find_first_of("\r\n \t") != std::string_view::npos) {
    return fail(Errc::bad_request, "the token has white space in it",
                "give it exactly as 'berth token create' showed it");
  }
  client_ = std::make_unique<Client>(std::move(endpoint), std::move(token));
  return client_.get();
}

Result<> Context::finish() {
  Result<> outcome;
  while (!at_end_.empty()) {
    const AtEnd undo = std::move(at_end_.back());
    at_end_.pop_back();
    const Result<> done = undo(*this);
    if (!done && outcome) outcome = done;
  }
  return outcome;
}

Result<bj::value> Context::send(const Request& request) {
  BERTH_TRY(const Client* server, client());
  BERTH_TRY(Answer answer, server->send(request));
  return std::move(answer.body);
}

Result<bj::value> Context::get(const std::string& path) {
  return send({.path = path});
}

Result<bj::array> Context::list(const std::string& path) {
  BERTH_TRY(const Client* server, client());
  return server->list(path, flags_.limit);
}

Result<std::string> Context::company_id() {
  if (company_id_) return *company_id_;
  std::string named = flags_.company;
  if (named.empty()) named = variable(console_.variables, "BERTH_COMPANY");
  if (named.empty() && !names_server(flags_, console_.variables)) {
    BERTH_TRY(const std::optional<Profile> profile, active_profile(flags_, console_.variables));
    if (profile) named = profile->company;
  }
  if (is_uuid(named)) return *(company_id_ = named);
  BERTH_TRY(const Client* server, client());
  BERTH_TRY(const bj::array companies, server->list("/api/companies", named_max));
  if (!named.empty()) {
    BERTH_TRY(const bj::value company, choose(companies, named, company_kind()));
    return *(company_id_ = text_of(company, "id"));
  }
  if (companies.size() == 1) return *(company_id_ = text_of(companies.front(), "id"));
  if (companies.empty()) {
    return fail(Errc::company_not_found, "the server has no company yet",
                "make one with 'berth company create NAME'");
  }
  Error error{.code = Errc::bad_request,
              .message = "the server has several companies, and none was named",
              .remedy = "name one with --company or BERTH_COMPANY"};
  for (const bj::value& company : companies) {
    error.facts["companies"].push_back(text_of(company, "id") + "  " + text_of(company, "name"));
  }
  return std::unexpected(std::move(error));
}

Result<std::string> Context::company_path(std::string_view rest) {
  BERTH_TRY(const std::string id, company_id());
  return "/api/companies/" + id + "/" + std::string{rest};
}

void Context::adopt_server_home() {
  const auto from = config_.sources.find("home");
  if (from != config_.sources.end() && from->second != "default") return;
  const Result<bj::value> findings = get("/api/instance/findings");
  const std::string home = findings ? home_in(*findings) : "";
  if (home.empty()) return;
  const std::string before = std::exchange(config_.settings.home, home);
  const auto move = [&](std::string& path, const std::string& prefix) {
    if (path.starts_with(prefix + before + "/")) path.replace(prefix.size(), before.size(), home);
  };
  move(config_.settings.master_key_file, "");
  move(config_.settings.database, "sqlite:");
}

void Context::add_names(bj::array& rows) {
  struct Reference {
    const char* from;
    const char* to;
    const Kind& kind;
  };
  const Reference references[] = {{"environmentId", "environmentName", environment_kind()},
                                  {"defaultEnvironmentId", "environmentName", environment_kind()},
                                  {"agentId", "agentName", agent_kind()}};
  for (const Reference& each : references) {
    const auto has_one = [&](const bj::value& row) { return !text_of(row, each.from).empty(); };
    if (std::ranges::none_of(rows, has_one)) continue;
    std::map<std::string, std::string> names;
    const Result<std::string> path = company_path(each.kind.path);
    const Result<bj::array> objects = path ? client_->list(*path, named_max) : bj::array{};
    for (const bj::value& object : objects.value_or(bj::array{})) {
      names[text_of(object, "id")] = text_of(object, "name");
    }
    for (bj::value& row : rows) {
      const std::string id = text_of(row, each.from);
      if (id.empty()) continue;
      const auto found = names.find(id);
      row.as_object()[each.to] = found == names.end() ? id : found->second;
    }
  }
}

Result<bj::value> Context::find(const Kind& kind, const std::string& named) {
  // Tokens have no endpoint of their own; every other object is found by its id at once.
  if (is_uuid(named) && kind.path != "tokens") return get("/api/" + kind.path + "/" + named);
  BERTH_TRY(const Client* server, client());
  std::string path = "/api/companies";
  if (&kind != &company_kind()) {
    BERTH_TRY(path, company_path(kind.path));
  }
  if (&kind == &run_kind()) return find_run(*server, path, named);
  BERTH_TRY(const bj::array objects, server->list(path, named_max));
  return choose(objects, named, kind);
}

Result<bj::value> Context::find_page(const Kind& kind, const std::string& named) {
  BERTH_TRY(const bj::value object, find(kind, named));
  if (is_uuid(named) || kind.path == "tokens") return object;
  return get("/api/" + kind.path + "/" + text_of(object, "id"));
}

Result<std::string> Context::find_id(const Kind& kind, const std::string& named) {
  if (is_uuid(named)) return named;
  BERTH_TRY(const bj::value object, find(kind, named));
  return text_of(object, "id");
}

}  // namespace berth::cli
