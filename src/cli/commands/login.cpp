#include "cli/commands/common.hpp"
#include "cli/profiles.hpp"

namespace berth::cli {
namespace {

constexpr auto login_example = R"(berth login https://berth.example.org
berth login http://127.0.0.1:3100 --profile lab --token-file ~/lab.token

The token comes from a file, a pipe or a prompt. URL and token are kept in
~/.config/berth/profiles.json, which only you can read. The profile of the last login is used where
neither --url, BERTH_URL nor --profile says otherwise.)";

struct LoginOptions {
  std::string url;
  std::string token_file;
  bool without_token = false;
};

// Checks the token with the server, so that a wrong one is not stored.
Result<> try_login(const Profile& profile) {
  BERTH_TRY(Endpoint endpoint, parse_endpoint(profile.url));
  std::optional<Secret> token;
  if (profile.token) token.emplace(profile.token->reveal());
  const Client client{std::move(endpoint), std::move(token)};
  BERTH_DO(client.list("/api/companies", 1));
  return {};
}

Result<> login(Context& context, const LoginOptions& options) {
  const GlobalFlags& flags = context.flags();
  Profile profile{.name = flags.profile.empty() ? "default" : flags.profile,
                  .url = options.url,
                  .company = flags.company,
                  .token = {}};
  if (!options.without_token) {
    BERTH_TRY(Secret token,
              read_secret(context.console(), options.token_file, "Token for " + options.url));
    if (token.reveal().empty()) {
      return fail(Errc::bad_request, "the token is empty",
                  "make one with 'berth token create', or use --no-token where the server trusts "
                  "local users");
    }
    profile.token.emplace(std::move(token));
  }
  BERTH_DO(try_login(profile));
  BERTH_TRY(Profiles profiles, Profiles::read(Profiles::file_of(context.console().variables)));
  profiles.put(profile);
  BERTH_DO(profiles.write());
  context.printer().note("logged in to " + profile.url + " as profile '" + profile.name + "', in " +
                         profiles.file());
  return {};
}

Result<> logout(Context& context) {
  BERTH_TRY(Profiles profiles, Profiles::read(Profiles::file_of(context.console().variables)));
  BERTH_DO(profiles.remove(context.flags().profile));
  BERTH_DO(profiles.write());
  context.printer().note(
      "forgotten; the token itself is still valid: 'berth token revoke' ends it");
  return {};
}

Result<> list_profiles(Context& context) {
  BERTH_TRY(const Profiles profiles,
            Profiles::read(Profiles::file_of(context.console().variables)));
  context.printer().list(
      profiles.rows(),
      {{"NAME", "name"}, {"URL", "url"}, {"COMPANY", "company"}, {"", "current", Shown::state}});
  return {};
}

}  // namespace

void add_login_commands(CommandTree& tree) {
  const auto options = std::make_shared<LoginOptions>();
  CLI::App& app = tree.leaf(
      tree.root(), "login", "remember a server and its token", login_example,
      [options](Context& context) { return login(context, *options); }, Needs::nothing);
  app.add_option("url", options->url, "the server: http://HOST:PORT or https://HOST")->required();
  app.add_option("--token-file", options->token_file, "read the token from this file")
      ->type_name("FILE");
  app.add_flag("--no-token", options->without_token, "the server trusts local users");
  tree.leaf(tree.root(), "logout", "forget a server and its token", "berth logout --profile lab",
            logout, Needs::nothing);
  tree.leaf(tree.root(), "profiles", "list the servers that you are logged in to", "berth profiles",
            list_profiles, Needs::nothing);
}

}  // namespace berth::cli
