#include "cli/commands/common.hpp"
#include "cli/commands/terminal.hpp"
#include "cli/run/span.hpp"

#include <ostream>

// Custom images of environments: prepared by hand in a sandbox, and captured.
namespace berth::cli {
namespace {

constexpr const char* sessions_path = "/api/environment-custom-image-setup-sessions/";

constexpr auto setup_example = R"(berth env setup Sandbox

Opens a shell in a sandbox of the environment, or says how its provider lets you in. When you are
done, you are asked whether its files become what every later sandbox of the environment starts
from. Without a terminal:

  berth env setup Sandbox --no-terminal      start a session and print it
  berth exec LEASE -- apt-get install ...    work in its sandbox
  berth env setup Sandbox --finish           capture it
  berth env setup Sandbox --cancel           forget it)";

struct SetupOptions {
  std::string named;
  std::string from;
  std::string ttl;
  bool no_terminal = false;
  bool finish = false;
  bool cancel = false;
};

Result<bj::value> end(Context& context, const std::string& id, const std::string& verb) {
  return context.send(
      {.method = "POST", .path = sessions_path + id + "/" + verb, .body = bj::value(bj::object{})});
}

Result<> end_active(Context& context, const std::string& environment, const std::string& verb) {
  BERTH_TRY(const bj::value image,
            context.get("/api/environments/" + environment + "/custom-image-template"));
  const bj::value& active = image.at("activeSession");
  if (!active.is_object()) {
    return fail(Errc::setup_session_not_found, "no setup session of the environment is open",
                "start one: berth env setup ENVIRONMENT");
  }
  BERTH_TRY(const bj::value done, end(context, text_of(active, "id"), verb));
  context.printer().object(done);
  return {};
}

Result<bj::value> start_setup(Context& context, const std::string& environment,
                              const SetupOptions& options) {
  bj::object body;
  set_text(body, "templateId", options.from);
  if (!options.ttl.empty()) {
    BERTH_TRY(const std::int64_t ms, parse_span_ms(options.ttl, "--ttl"));
    body["ttlSeconds"] = ms / 1000;
  }
  return context.send({.method = "POST",
                       .path = "/api/environments/" + environment + "/custom-image-setup-sessions",
                       .body = bj::value(std::move(body))});
}

// A provider may have its own access; only the user knows when the work there is done.
Result<> work_in(Context& context, const bj::value& started) {
  const bj::value& door = started.at("connectionPayload");
  if (!door.is_object()) {
    return fail(Errc::plugin_unavailable, "the provider does not say how to get into the sandbox",
                "ask again with: berth env setup ENVIRONMENT --no-terminal");
  }
  if (!text_of(door, "websocketPath").empty()) {
    BERTH_DO(sit_in_terminal(context, text_of(door, "leaseId"), {}));
    return {};
  }
  if (text_of(door, "command").empty()) {
    return fail(Errc::plugin_protocol,
                "the provider lets people in by " + text_of(door, "type") + " and gives no command",
                "look at the provider's own page, then: berth env setup ENVIRONMENT --finish");
  }
  // A user who must confirm needs to see this, even when stdout is a file.
  std::ostream& err = context.console().err;
  err << "connect with: " << printable(text_of(door, "command")) << "\n";
  if (const std::string token = text_of(door, "token"); !token.empty()) {
    err << "token: " << printable(token) << "\n";
  }
  return {};
}

Result<> setup(Context& context, const SetupOptions& options) {
  if (static_cast<int>(options.no_terminal) + static_cast<int>(options.finish) +
          static_cast<int>(options.cancel) >
      1) {
    return fail(Errc::bad_request, "--no-terminal, --finish and --cancel exclude one another");
  }
  BERTH_TRY(const std::string id, context.find_id(environment_kind(), options.named));
  if (options.finish) return end_active(context, id, "finish");
  if (options.cancel) return end_active(context, id, "cancel");
  const bool asks = context.console().in_is_terminal && !options.no_terminal;
  BERTH_TRY(const bj::value started, start_setup(context, id, options));
  if (!asks) {
    context.printer().object(started);
    return {};
  }
  const std::string name = text_of(started.at("session"), "id");
  // A broken connection is not an answer: the session still exists.
  BERTH_DO(work_in(context, started));
  const Result<> wanted =
      confirm(context.console(), "Start every later sandbox of " + options.named + " from this?",
              context.flags().yes);
  BERTH_TRY(const bj::value done, end(context, name, wanted ? "finish" : "cancel"));
  if (context.printer().look() == Look::json) context.printer().object(done);
  context.printer().note(wanted ? "captured; it is the environment's template now"
                                : "forgotten; nothing was changed");
  return {};
}

struct SetupImageOptions {
  std::string named;
  bool rollback = false;
  bool revoke = false;
  bool remove = false;
  bool relink = false;
  bool confirm = false;
};

Result<> image(Context& context, const SetupImageOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(environment_kind(), options.named));
  const std::string path = "/api/environments/" + id + "/custom-image-template";
  if (int{options.rollback} + int{options.revoke} + int{options.relink} > 1) {
    return fail(Errc::bad_request, "--rollback, --revoke and --relink exclude each other");
  }
  if (options.confirm && !options.relink) {
    return fail(Errc::bad_request, "--confirm says nothing without --relink");
  }
  if (options.remove && !options.revoke) {
    return fail(Errc::bad_request, "--delete says nothing without --revoke");
  }
  Request request{.method = "GET", .path = path};
  if (options.rollback) request = {.method = "POST", .path = path + "/rollback"};
  if (options.revoke) request = {.method = "DELETE", .path = path};
  if (options.remove) request.path += "?deleteProviderTemplate=true";
  if (options.relink) {
    request = {.method = "POST",
               .path = path + "/relink",
               .body = bj::object{{"confirmBootSourceDrift", options.confirm}}};
  }
  BERTH_TRY(const bj::value answer, context.send(request));
  context.printer().object(answer);
  return {};
}

}  // namespace

void add_setup_commands(CommandTree& tree, CLI::App& environments) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App& app =
      tree.leaf(environments, "setup", "prepare a sandbox by hand; later ones start from it",
                setup_example, [options](Context& context) { return setup(context, *options); });
  app.add_option("environment", options->named, "its name, or its id or an end of it")->required();
  app.add_option("--from", options->from, "the id of a template to begin with")->type_name("ID");
  app.add_option("--ttl", options->ttl, "how long it may take; an hour unless said")
      ->type_name("TIME");
  app.add_flag("--no-terminal", options->no_terminal, "only start the session and print it");
  app.add_flag("--finish", options->finish, "capture the session that is open");
  app.add_flag("--cancel", options->cancel, "forget the session that is open");
  const auto shown = std::make_shared<SetupImageOptions>();
  CLI::App& shows = tree.leaf(environments, "image",
                              "what sandboxes of an environment start from; go back to another",
                              "berth env image Sandbox --rollback",
                              [shown](Context& context) { return image(context, *shown); });
  shows.add_option("environment", shown->named, "its name, or its id or an end of it")->required();
  shows.add_flag("--rollback", shown->rollback, "make the template before the active one again");
  shows.add_flag("--revoke", shown->revoke, "start from the image again");
  shows.add_flag("--delete", shown->remove, "with --revoke: the template goes as well");
  shows.add_flag("--relink", shown->relink, "go on with it after the config was changed");
  shows.add_flag("--confirm", shown->confirm, "with --relink: also where the image is another now");
}

}  // namespace berth::cli
