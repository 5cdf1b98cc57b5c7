#include "cli/commands/common.hpp"
#include "core/enums.hpp"

#include <charconv>

namespace berth::cli {
namespace {

struct TokenOptions {
  std::string named;
  std::string name;
  std::string role{name_of(core::Role::operator_)};
  std::string agent;
  std::string expires;
  bool instance = false;
};

// "30d", "12h" from now, or a time in ISO 8601.
Result<std::string> moment_of(const std::string& text, Time now) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc{} && unit + 1 == end && count > 0 && count < 100'000) {
    const std::int64_t ms = *unit == 'd' ? 86'400'000 : *unit == 'h' ? 3'600'000 : 0;
    if (ms != 0) return to_iso8601(now + count * ms);
  }
  if (const auto at = parse_iso8601(text)) return to_iso8601(*at);
  return fail(Errc::bad_request, "--expires '" + text + "': is neither a time nor a span",
              "write it as 30d, 12h or 2027-01-31T00:00:00.000Z");
}

Result<std::string> tokens_path(Context& context, const TokenOptions& options) {
  if (options.instance) return "/api/tokens";
  return context.company_path("tokens");
}

Result<> list_tokens(Context& context, const TokenOptions& options) {
  BERTH_TRY(const std::string path, tokens_path(context, options));
  BERTH_TRY(const bj::array rows, context.list(path));
  context.printer().list(rows, token_kind().columns);
  return {};
}

Result<bj::value> find_token(Context& context, const TokenOptions& options) {
  BERTH_TRY(const std::string path, tokens_path(context, options));
  BERTH_TRY(const Client* server, context.client());
  BERTH_TRY(const bj::array rows, server->list(path, 10'000));
  return choose(rows, options.named, token_kind());
}

// Two keys with one name cannot be distinguished when one is to be revoked.
Result<> expect_new_name(Context& context, const std::string& path, const std::string& name) {
  BERTH_TRY(const Client* server, context.client());
  const Result<bj::array> rows = server->list(path, 10'000);
  for (const bj::value& row : rows.value_or(bj::array{})) {
    if (text_of(row, "name") != name || !text_of(row, "revokedAt").empty()) continue;
    return fail(Errc::conflict, "a token named '" + name + "' exists: " + text_of(row, "id"),
                "choose another name, or revoke that one first: berth token revoke " + name);
  }
  return {};
}

Result<> create_token(Context& context, const TokenOptions& options) {
  BERTH_TRY(const std::string path, tokens_path(context, options));
  BERTH_DO(expect_new_name(context, path, options.name));
  bj::object body{{"name", options.name}};
  // An agent's permissions do not depend on its key.
  if (options.agent.empty()) body["role"] = options.role;
  const auto kind =
      options.agent.empty() ? core::TokenKind::operator_key : core::TokenKind::agent_key;
  body["kind"] = bj::string(name_of(kind));
  if (!options.agent.empty()) {
    BERTH_TRY(body["agentId"], context.find_id(agent_kind(), options.agent));
  }
  if (!options.expires.empty()) {
    BERTH_TRY(body["expiresAt"], moment_of(options.expires, context.printer().now()));
  }
  BERTH_TRY(const bj::value made,
            context.send({.method = "POST", .path = path, .body = std::move(body)}));
  if (context.printer().look() == Look::json) {
    context.printer().object(made);
    return {};
  }
  context.printer().note("this key is shown once; keep it where only you can read it:");
  context.printer().text(text_of(made, "key") + "\n");
  return {};
}

Result<> revoke(Context& context, const TokenOptions& options) {
  std::string id = options.named;
  std::string name = id;
  if (!is_uuid(id)) {
    BERTH_TRY(const bj::value token, find_token(context, options));
    id = text_of(token, "id");
    name = text_of(token, "name");
  }
  BERTH_DO(confirm(context.console(), "Revoke the token '" + name + "'?", context.flags().yes));
  BERTH_TRY(const bj::value gone, context.send({.method = "DELETE", .path = "/api/tokens/" + id}));
  if (context.printer().look() == Look::json) context.printer().object(gone);
  context.printer().note("revoked the token '" + name + "'");
  return {};
}

void add_scope(CLI::App& app, TokenOptions& options) {
  app.add_flag("--instance", options.instance, "keys of the whole server, not of a company");
}

CLI::App& add_named(CommandTree& tree, CLI::App& group, const std::string& name,
                    const std::string& says, Result<> (*act)(Context&, const TokenOptions&)) {
  const auto options = std::make_shared<TokenOptions>();
  CLI::App& app = tree.leaf(group, name, says, "berth token " + name + " laptop",
                            [options, act](Context& context) { return act(context, *options); });
  app.add_option("token", options->named, "its name, or its id or an end of it")->required();
  add_scope(app, *options);
  return app;
}

}  // namespace

void add_token_commands(CommandTree& tree) {
  CLI::App& group = tree.group("token", "tokens: keys for people and agents");
  const auto listed = std::make_shared<TokenOptions>();
  CLI::App& lists = tree.leaf(group, "list", "list them, newest first", "berth token list",
                              [listed](Context& context) { return list_tokens(context, *listed); });
  add_scope(lists, *listed);

  add_named(tree, group, "get", "show one",
            [](Context& context, const TokenOptions& options) -> Result<> {
              BERTH_TRY(const bj::value token, find_token(context, options));
              context.printer().object(token);
              return {};
            });

  const auto made = std::make_shared<TokenOptions>();
  CLI::App& creates = tree.leaf(group, "create", "make a key; it is shown once",
                                "berth token create laptop --role operator --expires 90d",
                                [made](Context& context) { return create_token(context, *made); });
  creates.add_option("name", made->name, "its name")->required();
  CLI::Option* const role = add_choice<core::Role>(creates, "--role", made->role, "what it may do")
                                ->capture_default_str();
  creates.add_option("--agent", made->agent, "a key for this agent, not for a person")
      ->type_name("AGENT")
      ->excludes(role);
  creates.add_option("--expires", made->expires, "when it stops working")->type_name("30d|TIME");
  add_scope(creates, *made);

  add_named(tree, group, "revoke", "make a key useless", revoke);
}

}  // namespace berth::cli
