#include "http/binding.hpp"
#include "http/routes/routes.hpp"

// The tables that are bindings and nothing else.
namespace berth::http {

std::vector<Route> company_routes(const api::Table& operations) {
  using enum Verb;
  const std::string path = "/api/companies/{company}";
  return bind_all(operations, "companies",
                  {{get, "/api/companies", "company.list"},
                   {post, "/api/companies", "company.create", 201},
                   {get, path, "company.get"},
                   {patch, path, "company.update"},
                   {patch, path + "/allowances", "company.allow"},
                   {delete_, path, "company.delete"},
                   {get, path + "/usage", "company.usage"},
                   {patch, path + "/quota", "company.set_quota"}});
}

std::vector<Route> agent_routes(const api::Table& operations) {
  using enum Verb;
  const std::string path = "/api/agents/{agent}";
  return bind_all(operations, "agents",
                  {{get, "/api/companies/{company}/agents", "agent.list"},
                   {post, "/api/companies/{company}/agents", "agent.create", 201},
                   {get, "/api/adapters", "adapter.list"},
                   {get, "/api/agents/me", "agent.self"},
                   {get, path, "agent.get"},
                   {patch, path, "agent.update"},
                   {delete_, path, "agent.delete"},
                   {get, path + "/homes", "agent.homes"},
                   {post, path + "/reset", "agent.reset"}});
}

std::vector<Route> environment_routes(const api::Table& operations) {
  using enum Verb;
  const std::string all = "/api/companies/{company}/environments";
  const std::string path = "/api/environments/{environment}";
  return bind_all(operations, "environments",
                  {{get, all, "environment.list"},
                   {post, all, "environment.create", 201},
                   {get, all + "/overview", "environment.overview"},
                   {get, all + "/capabilities", "environment.capabilities"},
                   {get, path, "environment.get"},
                   {patch, path, "environment.update"},
                   {delete_, path, "environment.delete"},
                   {get, path + "/delete-blast-radius", "environment.blast_radius"},
                   {get, path + "/secret-refs", "environment.secret_refs"}});
}

std::vector<Route> lease_routes(const api::Table& operations) {
  using enum Verb;
  const std::string path = "/api/environment-leases/{lease}";
  const std::string sandbox = "/api/sandboxes/{sandbox}";
  return bind_all(
      operations, "leases",
      {{get, "/api/environments/{environment}/leases", "environment.leases"},
       {get, "/api/companies/{company}/environment-leases", "lease.list"},
       {get, path, "lease.get"},
       {post, path + "/release", "lease.release"},
       {post, path + "/destroy", "lease.destroy"},
       {get, path + "/usage", "lease.usage"},
       {get, path + "/listening", "lease.listening"},
       {post, path + "/exec", "lease.exec"},
       {post, path + "/adopt", "lease.adopt"},
       {post, path + "/force-resolve", "lease.force_resolve"},
       {get, "/api/companies/{company}/sandboxes", "sandbox.list"},
       {get, sandbox, "sandbox.get"},
       {post, sandbox + "/lease", "sandbox.lease", 201},
       {delete_, sandbox, "sandbox.delete"},
       {.path = path + "/egress", .operation = "lease.egress", .ends_with_client = true},
       {put, path + "/egress", "lease.set_egress"}});
}

std::vector<Route> probe_routes(const api::Table& operations) {
  using enum Verb;
  return bind_all(
      operations, "environments",
      {{post, "/api/environments/{environment}/probe", "environment.probe"},
       {post, "/api/companies/{company}/environments/probe-config", "environment.probe_draft"}});
}

std::vector<Route> template_routes(const api::Table& operations) {
  using enum Verb;
  const std::string lease = "/api/environment-leases/{lease}";
  const std::string path = "/api/templates/{template_}";
  return bind_all(operations, "templates",
                  {{post, lease + "/capture", "lease.capture", 201},
                   {get, "/api/companies/{company}/templates", "template.list"},
                   {get, path, "template.get"},
                   {delete_, path, "template.delete"},
                   {post, path + "/adopt", "template.adopt"},
                   {post, path + "/force-resolve", "template.force_resolve"},
                   {get, lease + "/changes", "lease.changes"},
                   {post, lease + "/rollback", "lease.roll_back"},
                   {post, lease + "/fork", "lease.fork", 201},
                   {post, lease + "/freeze", "lease.freeze"},
                   {post, lease + "/thaw", "lease.thaw"}});
}

std::vector<Route> image_routes(const api::Table& operations) {
  using enum Verb;
  const std::string path = "/api/environments/{environment}/custom-image-template";
  return bind_all(operations, "templates",
                  {{get, path, "image.get"},
                   {post, path + "/rollback", "image.roll_back"},
                   {post, path + "/relink", "image.relink"},
                   {delete_, path, "image.revoke"}});
}

std::vector<Route> plugin_routes(const api::Table& operations) {
  using enum Verb;
  const std::string path = "/api/plugins/{plugin}";
  return bind_all(operations, "plugins",
                  {{get, "/api/plugins", "plugin.list"},
                   {post, "/api/plugins/install", "plugin.install", 201},
                   {get, path, "plugin.get"},
                   {delete_, path, "plugin.uninstall"},
                   {post, path + "/enable", "plugin.enable"},
                   {post, path + "/disable", "plugin.disable"},
                   {post, path + "/restart", "plugin.restart"},
                   {put, path + "/egress", "plugin.set_egress"},
                   {get, path + "/egress", "plugin.egress"},
                   {post, path + "/upgrade", "plugin.upgrade"},
                   {get, path + "/config", "plugin.config"},
                   {post, path + "/config", "plugin.set_config"},
                   {post, path + "/config/test", "plugin.test_config"},
                   {get, path + "/logs", "plugin.logs"},
                   {get, path + "/health", "plugin.health"}});
}

std::vector<Route> secret_routes(const api::Table& operations) {
  using enum Verb;
  const std::string all = "/api/companies/{company}/secrets";
  const std::string path = "/api/secrets/{secret}";
  return bind_all(operations, "secrets",
                  {{get, all, "secret.list"},
                   {get, all + "/catalog", "secret.catalog"},
                   {post, all, "secret.create", 201},
                   {get, path, "secret.get"},
                   {post, path + "/rotate", "secret.rotate"},
                   {patch, path, "secret.update"},
                   {delete_, path, "secret.delete"},
                   {get, path + "/usage", "secret.usage"},
                   {get, path + "/access-events", "secret.access_events"},
                   {get, path + "/versions", "secret.versions"},
                   {get, "/api/agents/me/secrets", "run_secret.list"},
                   {post, "/api/agents/me/secrets/{key}/value", "run_secret.read"}});
}

std::vector<Route> token_routes(const api::Table& operations) {
  using enum Verb;
  const std::string all = "/api/companies/{company}/tokens";
  return bind_all(operations, "tokens",
                  {{get, all, "token.list"},
                   {post, all, "token.create", 201},
                   {get, "/api/tokens", "token.list_all"},
                   {post, "/api/tokens", "token.create_instance_key", 201},
                   {get, "/api/tokens/{token}", "token.get"},
                   {delete_, "/api/tokens/{token}", "token.revoke"}});
}

std::vector<Route> instance_routes(const api::Table& operations) {
  using enum Verb;
  return bind_all(operations, "instance",
                  {{get, "/api/instance/settings", "instance.settings"},
                   {patch, "/api/instance/settings", "instance.update_settings"},
                   {post, "/api/instance/rekey", "instance.rekey"}});
}

}  // namespace berth::http
