#include "engine/secrets/secrets.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"
#include "engine/runs/run_secrets.hpp"

namespace berth::api {
namespace {

struct OfKey {
  std::string key;
};
BOOST_DESCRIBE_STRUCT(OfKey, (), (key))

}  // namespace

std::vector<Entry> secret_operations(engine::Secrets& secrets, engine::RunSecrets& run_secrets) {
  using core::Permission;
  using engine::RunSecrets;
  using engine::Secrets;
  return {
      Operation{.name = "secret.list",
                .needs = Permission::company_operate,
                .says = "List the secrets of a company; values are never shown",
                .call = use(secrets, &Secrets::list)},
      Operation{.name = "secret.catalog",
                .needs = Permission::company_read,
                .says = "List the names by which config may refer to secrets",
                .call = use(secrets, &Secrets::catalog)},
      Operation{.name = "secret.create",
                .needs = Permission::company_operate,
                .says = "Create a secret; its value is sealed and never shown again",
                .call = use(secrets, &Secrets::create)},
      Operation{.name = "secret.get",
                .needs = Permission::company_operate,
                .says = "Read what is known of a secret, without its value",
                .call = use(secrets, &Secrets::get)},
      Operation{.name = "secret.rotate",
                .needs = Permission::company_operate,
                .says = "Give a secret a new value as its next version",
                .call = use(secrets, &Secrets::rotate)},
      Operation{.name = "secret.update",
                .needs = Permission::company_operate,
                .says = "Rename, describe, disable or enable a secret",
                .call = use(secrets, &Secrets::update)},
      Operation{.name = "secret.delete",
                .needs = Permission::company_operate,
                .says = "Delete a secret with its versions, bindings and access events",
                .call = use(secrets, &Secrets::remove)},
      Operation{.name = "secret.usage",
                .needs = Permission::company_operate,
                .says = "List what a secret is bound to",
                .call = use(secrets, &Secrets::usage)},
      Operation{.name = "secret.access_events",
                .needs = Permission::company_operate,
                .says = "List who read a secret, or tried to, newest first",
                .call = use(secrets, &Secrets::access_events)},
      Operation{.name = "secret.versions",
                .needs = Permission::company_operate,
                .says = "List the versions of a secret, without their values",
                .call = use(secrets, &Secrets::versions)},
      // For a run's process, which acts for its agent.
      Operation{.name = "run_secret.list",
                .needs = Permission::agent_self,
                .says = "List the secrets that the calling run may read, without their values",
                .call = use(run_secrets, &RunSecrets::list)},
      Operation{.name = "run_secret.read",
                .needs = Permission::agent_self,
                .says = "Read the value of a secret of the calling run; its output hides it from "
                        "then on",
                .call = use_on<OfKey>(run_secrets, &RunSecrets::read)},
  };
}

}  // namespace berth::api
