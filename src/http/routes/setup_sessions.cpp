#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

// Custom images of environments, and the sessions in which somebody prepares one.
namespace berth::http {
namespace {

struct SessionPath {
  core::SetupSessionId session;
};
BOOST_DESCRIBE_STRUCT(SessionPath, (), (session))

std::vector<Route> image_table(engine::Templates& templates) {
  using core::Permission;
  const std::string path = "/api/environments/{environment}/custom-image-template";
  return {
      Endpoint<EnvironmentPath, None, None, engine::CustomImage>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "What sandboxes of an environment start from, and who prepares another",
          .call = [&templates](
                      core::Call call,
                      auto in) { return templates.custom_image(call, in.path.environment); }},
      Endpoint<EnvironmentPath, None, None, engine::ImageRolledBack>{
          .verb = Verb::post,
          .path = path + "/rollback",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Make the template that was active before the active one again",
          .call = [&templates](core::Call call,
                               auto in) { return templates.roll_back(call, in.path.environment); }},
      Endpoint<EnvironmentPath, None, None, core::Template>{
          .verb = Verb::delete_,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Let sandboxes of an environment start from its image again; the template stays",
          .call = [&templates](core::Call call,
                               auto in) { return templates.revoke(call, in.path.environment); }},
  };
}

std::vector<Route> session_table(engine::SetupSessions& sessions) {
  using core::Permission;
  const std::string path = "/api/environment-custom-image-setup-sessions/{session}";
  return {
      Endpoint<EnvironmentPath, None, engine::StartSetup, engine::SetupView>{
          .verb = Verb::post,
          .path = "/api/environments/{environment}/custom-image-setup-sessions",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Make a sandbox of an environment for somebody to prepare by hand",
          .status = 201,
          .call =
              [&sessions](core::Call call, auto in) {
                return sessions.start(call, in.path.environment, std::move(in.body));
              }},
      Endpoint<SessionPath, None, None, engine::SetupView>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Read a setup session, and how to get into its sandbox",
          .call = [&sessions](core::Call call,
                              auto in) { return sessions.get(call, in.path.session); }},
      Endpoint<SessionPath, None, engine::FinishSetup, engine::SetupFinished>{
          .verb = Verb::post,
          .path = path + "/finish",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Capture the sandbox of a setup session; the environment starts from it from now "
                  "on",
          .call =
              [&sessions](core::Call call, auto in) {
                return sessions.finish(call, in.path.session, std::move(in.body));
              }},
      Endpoint<SessionPath, None, engine::CancelSetup, core::SetupSession>{
          .verb = Verb::post,
          .path = path + "/cancel",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "End a setup session without capturing anything",
          .call =
              [&sessions](core::Call call, auto in) {
                return sessions.cancel(call, in.path.session, std::move(in.body));
              }},
  };
}

}  // namespace

std::vector<Route> setup_session_routes(engine::Engine& work) {
  std::vector<Route> all = image_table(work.templates);
  for (Route& route : session_table(work.setup_sessions)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
