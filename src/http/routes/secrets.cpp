#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

struct SecretPath {
  core::SecretId secret;
};
BOOST_DESCRIBE_STRUCT(SecretPath, (), (secret))

struct SecretKeyPath {
  std::string key;
};
BOOST_DESCRIBE_STRUCT(SecretKeyPath, (), (key))

std::vector<Route> company_secret_routes(engine::Secrets& secrets) {
  using core::Permission;
  return {
      Endpoint<CompanyPath, PageQuery, None, core::Listing<engine::SecretInList>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/secrets",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "List the secrets of a company; values are never shown",
          .call =
              [&secrets](core::Call call, auto in) {
                return with_page(
                    in.query, [&secrets, call, company = in.path.company](core::PageRequest page) {
                      return secrets.list(call, company, std::move(page));
                    });
              }},
      Endpoint<CompanyPath, PageQuery, None, core::Listing<engine::SecretInCatalog>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/secrets/catalog",
          .needs = Permission::company_read,
          .tag = "secrets",
          .says = "List the names by which config may refer to secrets",
          .call =
              [&secrets](core::Call call, auto in) {
                return with_page(
                    in.query, [&secrets, call, company = in.path.company](core::PageRequest page) {
                      return secrets.catalog(call, company, std::move(page));
                    });
              }},
      Endpoint<CompanyPath, None, engine::CreateSecret, core::SecretRecord>{
          .verb = Verb::post,
          .path = "/api/companies/{company}/secrets",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "Create a secret; its value is sealed and never shown again",
          .status = 201,
          .call =
              [&secrets](core::Call call, auto in) {
                return secrets.create(call, in.path.company, std::move(in.body));
              }},
  };
}

std::vector<Route> single_secret_routes(engine::Secrets& secrets) {
  using core::Permission;
  return {
      Endpoint<SecretPath, None, None, core::SecretRecord>{
          .verb = Verb::get,
          .path = "/api/secrets/{secret}",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "Read what is known of a secret, without its value",
          .call = [&secrets](core::Call call,
                             auto in) { return secrets.get(call, in.path.secret); }},
      Endpoint<SecretPath, None, engine::RotateSecret, core::SecretRecord>{
          .verb = Verb::post,
          .path = "/api/secrets/{secret}/rotate",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "Give a secret a new value as its next version",
          .call =
              [&secrets](core::Call call, auto in) {
                return secrets.rotate(call, in.path.secret, std::move(in.body));
              }},
      Endpoint<SecretPath, None, engine::UpdateSecret, core::SecretRecord>{
          .verb = Verb::patch,
          .path = "/api/secrets/{secret}",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "Rename, describe, disable or enable a secret",
          .call =
              [&secrets](core::Call call, auto in) {
                return secrets.update(call, in.path.secret, std::move(in.body));
              }},
      Endpoint<SecretPath, None, None, engine::Acknowledged>{
          .verb = Verb::delete_,
          .path = "/api/secrets/{secret}",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "Delete a secret with its versions, bindings and access events",
          .call = [&secrets](core::Call call,
                             auto in) { return secrets.remove(call, in.path.secret); }},
      Endpoint<SecretPath, None, None, engine::SecretUsage>{
          .verb = Verb::get,
          .path = "/api/secrets/{secret}/usage",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "List what a secret is bound to",
          .call = [&secrets](core::Call call,
                             auto in) { return secrets.usage(call, in.path.secret); }},
      Endpoint<SecretPath, PageQuery, None, core::Listing<core::SecretAccessEvent>>{
          .verb = Verb::get,
          .path = "/api/secrets/{secret}/access-events",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "List who read a secret, or tried to, newest first",
          .call =
              [&secrets](core::Call call, auto in) {
                return with_page(in.query,
                                 [&secrets, call, id = in.path.secret](core::PageRequest page) {
                                   return secrets.access_events(call, id, std::move(page));
                                 });
              }},
      Endpoint<SecretPath, None, None, std::vector<engine::SecretVersionView>>{
          .verb = Verb::get,
          .path = "/api/secrets/{secret}/versions",
          .needs = Permission::company_operate,
          .tag = "secrets",
          .says = "List the versions of a secret, without their values",
          .call = [&secrets](core::Call call,
                             auto in) { return secrets.versions(call, in.path.secret); }},
  };
}

// For a run's process, which acts for its agent.
std::vector<Route> run_secret_routes(engine::RunSecrets& secrets) {
  using core::Permission;
  return {
      Endpoint<None, None, None, engine::RunSecretList>{
          .verb = Verb::get,
          .path = "/api/agents/me/secrets",
          .needs = Permission::agent_self,
          .tag = "secrets",
          .says = "List the secrets that the calling run may read, without their values",
          .call = [&secrets](core::Call call, auto /*in*/) { return secrets.list(call); }},
      Endpoint<SecretKeyPath, None, None, engine::RunSecretValue>{
          .verb = Verb::post,
          .path = "/api/agents/me/secrets/{key}/value",
          .needs = Permission::agent_self,
          .tag = "secrets",
          .says = "Read the value of a secret of the calling run; its output hides it from then on",
          .call = [&secrets](core::Call call, auto in) { return secrets.read(call, in.path.key); }},
  };
}

}  // namespace

std::vector<Route> secret_routes(engine::Engine& work) {
  std::vector<Route> all = company_secret_routes(work.secrets);
  for (Route& route : single_secret_routes(work.secrets)) all.push_back(std::move(route));
  for (Route& route : run_secret_routes(work.run_secrets)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
