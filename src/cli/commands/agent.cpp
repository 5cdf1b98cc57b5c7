#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/follow.hpp"
#include "cli/commands/variables.hpp"
#include "core/config/adapters.hpp"
#include "core/enums.hpp"

namespace berth::cli {
namespace {

struct AgentOptions {
  std::string named;
  std::string name;
  std::string role;
  std::optional<std::string> title;
  std::string adapter;
  std::string status;
  std::string config;
  std::vector<std::string> set;
  VariableFlags variables;
  std::string instructions;
  std::optional<std::string> environment;
};

// Config fields that were given one by one, as `key=value`.
Result<std::vector<std::string>> fields_of(Context& context, const AgentOptions& options) {
  std::vector<std::string> out = options.set;
  BERTH_TRY(const std::vector<Variable> given,
            read_variables(options.variables, context.console().variables));
  BERTH_TRY(const bj::object variables, variables_in_json(context, given));
  for (const auto& [name, value] : variables) {
    out.push_back("env." + std::string{name} + "=" + encode_text(value));
  }
  if (!options.instructions.empty()) {
    BERTH_TRY(const std::string text,
              read_file(options.instructions, core::instructions_bytes_max));
    out.push_back("instructions=" + encode_text(bj::value(bj::string(text))));
  }
  return out;
}

Result<bj::object> agent_body(Context& context, const AgentOptions& options) {
  bj::object body;
  set_text(body, "name", options.name);
  set_text(body, "role", options.role);
  set_nullable(body, "title", options.title);
  set_text(body, "adapterType", options.adapter);
  set_text(body, "status", options.status);
  BERTH_TRY(const std::vector<std::string> fields, fields_of(context, options));
  if (!options.config.empty() || !fields.empty()) {
    bj::object config;
    if (!options.config.empty()) {
      BERTH_TRY(config, read_object(options.config, "--config"));
    }
    BERTH_DO(lay_over(config, fields, "--set"));
    body["adapterConfig"] = std::move(config);
  }
  if (options.environment) {
    body["defaultEnvironmentId"] = nullptr;
    if (!options.environment->empty()) {
      BERTH_TRY(body["defaultEnvironmentId"],
                context.find_id(environment_kind(), *options.environment));
    }
  }
  return body;
}

Result<> create_agent(Context& context, const AgentOptions& options) {
  BERTH_TRY(const std::string path, context.company_path("agents"));
  BERTH_TRY(const bj::object body, agent_body(context, options));
  BERTH_TRY(const bj::value made, context.send({.method = "POST", .path = path, .body = body}));
  context.printer().object(made);
  return {};
}

// Fields that were given one by one are merged into the stored config.
Result<> merge_set(Context& context, const std::string& id, const AgentOptions& options,
                   Request& request) {
  BERTH_TRY(const std::vector<std::string> fields, fields_of(context, options));
  if (!options.config.empty() || fields.empty()) return {};
  BERTH_TRY(const Client* server, context.client());
  BERTH_TRY(const Answer stored, server->send({.path = "/api/agents/" + id}));
  request.if_match = stored.etag;  // another client's change in between is not overwritten
  bj::object merged = peek<bj::object>(stored.body, "adapterConfig").value_or(bj::object{});
  BERTH_DO(lay_over(merged, fields, "--set"));
  // null removes a field.
  bj::object kept;
  for (const auto& [key, value] : merged) {
    if (!value.is_null()) kept[key] = value;
  }
  request.body->as_object()["adapterConfig"] = std::move(kept);
  return {};
}

Result<> update_agent(Context& context, const AgentOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(agent_kind(), options.named));
  BERTH_TRY(const bj::object body, agent_body(context, options));
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  Request request{.method = "PATCH", .path = "/api/agents/" + id, .body = body};
  BERTH_DO(merge_set(context, id, options, request));
  BERTH_TRY(const bj::value changed, context.send(request));
  context.printer().object(changed);
  return {};
}

struct InvokeOptions {
  std::string named;
  std::optional<std::string> prompt;  // an empty one is for the server to refuse
  std::string environment;
  std::string reason;
  bool follow = false;
  bool raw = false;
  bool fresh = false;
};

Result<> invoke(Context& context, const InvokeOptions& options) {
  BERTH_TRY(const bj::value agent, context.find(agent_kind(), options.named));
  const std::string id = text_of(agent, "id");
  bj::object body;
  if (options.prompt) body["prompt"] = *options.prompt;
  set_text(body, "reason", options.reason);
  if (options.fresh) body["forceFreshSession"] = true;
  if (!options.environment.empty()) {
    BERTH_TRY(body["environmentId"], context.find_id(environment_kind(), options.environment));
  }
  BERTH_TRY(const Client* server, context.client());
  const Request request{
      .method = "POST", .path = "/api/agents/" + id + "/heartbeat/invoke", .body = body};
  if (!options.follow) {
    BERTH_TRY(const bj::value run, context.send(request));
    // The id alone, as `berth run -d` prints it.
    if (context.printer().is_json()) {
      context.printer().object(run);
    } else {
      context.printer().text(text_of(run, "id") + "\n");
    }
    return {};
  }
  Attachment attachment{*server, context.console()};
  BERTH_TRY(const bj::value run, context.send(request));
  AttachOptions wanted{.run_id = text_of(run, "id"), .on_interrupt = OnInterrupt::cancel_run};
  if (context.flags().json) wanted.output_to = OutputTo::all_to_err;
  TranscriptView view;
  const auto adapter = parse_name<core::AdapterType>(text_of(agent, "adapterType"));
  if (adapter && !options.raw && !context.flags().json) view = TranscriptView{context, *adapter};
  return follow_run(context, attachment, std::move(wanted), view);
}

void add_invoke(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<InvokeOptions>();
  CLI::App& app = tree.leaf(group, "invoke", "start a turn of an agent",
                            "berth agent invoke builder -p 'fix the build' -f",
                            [options](Context& context) { return invoke(context, *options); });
  app.add_option("agent", options->named, "its name, or its id or an end of it")->required();
  app.add_option("-p,--prompt", options->prompt, "the prompt, in place of its template")
      ->type_name("TEXT");
  app.add_option("-e,--environment", options->environment, "where, in place of its own")
      ->type_name("ENVIRONMENT");
  app.add_option("--reason", options->reason, "why; it is kept with the run")->type_name("TEXT");
  app.add_flag("-f,--follow", options->follow, "stay at it, as 'berth run' does");
  app.add_flag("--raw", options->raw, "with -f: what its program prints, as it is");
  app.add_flag("--fresh", options->fresh, "begin a new session in place of the agent's own");
}

// One field per line for users; programs get the schemas.
Result<> adapters(Context& context) {
  BERTH_TRY(const bj::value list, context.get("/api/adapters"));
  if (context.printer().look() == Look::json || !list.is_array()) {
    context.printer().object(list);
    return {};
  }
  std::string out;
  for (const bj::value& adapter : list.get_array()) {
    out += (out.empty() ? "" : "\n") + text_of(adapter, "adapterType") + ": " +
           text_of(adapter, "about") + "\n";
    const auto fields = peek<bj::object>(peek<bj::object>(adapter, "configSchema"), "properties");
    if (!fields) continue;
    for (const auto& [key, field] : *fields) {
      const auto usual = peek<bj::value>(field, "default");
      out += "  " + std::string{key} + (usual ? "=" + encode_text(*usual) : "") + "\n      " +
             printable(text_of(field, "description")) + "\n";
    }
  }
  context.printer().text(out);
  return {};
}

struct ResetOptions {
  std::string named;
  std::string environment;
};

Result<> reset(Context& context, const ResetOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(agent_kind(), options.named));
  bj::object body;
  if (!options.environment.empty()) {
    BERTH_TRY(body["environmentId"], context.find_id(environment_kind(), options.environment));
  }
  BERTH_TRY(const bj::value done,
            context.send({.method = "POST", .path = "/api/agents/" + id + "/reset", .body = body}));
  context.printer().object(done);
  return {};
}

void add_reset(CommandTree& tree, CLI::App& group) {
  const auto options = std::make_shared<ResetOptions>();
  CLI::App& app = tree.leaf(group, "reset", "forget what an agent keeps between its turns",
                            "berth agent reset builder -e Sandbox",
                            [options](Context& context) { return reset(context, *options); });
  app.add_option("agent", options->named, "its name, or its id or an end of it")->required();
  app.add_option("-e,--environment", options->environment, "there alone, in place of everywhere")
      ->type_name("ENVIRONMENT");
}

void add_agent_fields(CLI::App& app, AgentOptions& options) {
  app.add_option("--role", options.role, "what it does")->type_name("TEXT");
  app.add_option("--title", options.title, "its title; '' clears it")->type_name("TEXT");
  app.add_option("--config", options.config,
                 "config of its adapter; fields: docs/agents.md, 'berth agent adapters'")
      ->type_name("JSON|@FILE");
  app.add_option("--set", options.set,
                 "one field of that config; the others remain, and null removes it")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_variable_flags(app, options.variables);
  add_old_name(app, "--env-secret", options.variables.secrets);
  app.add_option("--instructions", options.instructions,
                 "a file with text that it is given with every turn")
      ->type_name("FILE");
  app.add_option("-e,--environment", options.environment, "where it works; '' clears it")
      ->type_name("ENVIRONMENT");
  add_old_name(app, "--env", options.environment);
}

}  // namespace

void add_agent_commands(CommandTree& tree) {
  CLI::App& group = tree.group("agent", "agents: who works");
  add_list(tree, group, agent_kind());
  add_get(tree, group, agent_kind(), "berth agent get builder");

  const auto made = std::make_shared<AgentOptions>();
  CLI::App& creates =
      tree.leaf(group, "create", "make an agent",
                "berth agent create builder --adapter process --set command=/usr/bin/make -e Local",
                [made](Context& context) { return create_agent(context, *made); });
  creates.add_option("name", made->name, "its name")->required();
  made->adapter = name_of(core::AdapterType::process);
  add_choice<core::AdapterType>(creates, "--adapter", made->adapter, "how it is started")
      ->capture_default_str();
  add_agent_fields(creates, *made);

  const auto changed = std::make_shared<AgentOptions>();
  CLI::App& updates =
      tree.leaf(group, "update", "change an agent", "berth agent update builder -e Local",
                [changed](Context& context) { return update_agent(context, *changed); });
  updates.add_option("agent", changed->named, "its name, or its id or an end of it")->required();
  updates.add_option("--name", changed->name, "its new name")->type_name("TEXT");
  add_choice<core::AdapterType>(updates, "--adapter", changed->adapter, "how it is started");
  add_choice<core::AgentStatus>(updates, "--status", changed->status, "what it may do");
  add_agent_fields(updates, *changed);
  add_delete(tree, group, agent_kind(), "berth agent delete builder --yes");
  tree.leaf(group, "adapters", "list the adapters and the fields of their configs",
            "berth agent adapters", [](Context& context) { return adapters(context); });
  add_invoke(tree, group);
  add_reset(tree, group);
}

}  // namespace berth::cli
