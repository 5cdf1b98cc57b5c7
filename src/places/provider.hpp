#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "core/rows/agent_home.hpp"
#include "keepers/command.hpp"
#include "places/snapshots.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A provider makes sandboxes. It gets values and returns facts; it neither decides nor remembers.
namespace berth::providers {

// A provider's verdict on a config.
struct Verdict {
  bool ok = false;
  std::string summary = {};
  bj::object details = {};
  std::vector<execution::ProbeStep> steps = {};  // what was tried, if there was more than one step
};

struct AcquireLease {
  bj::object config;
  // Ours, recorded before the request to the provider, so that a repeated call finds what was made.
  std::optional<core::SandboxId> key = {};
  std::optional<core::EnvironmentId> environment_id = {};  // absent: an unsaved config
  std::optional<core::RunId> run_id = {};                  // absent: an ad-hoc lease for a test
  std::optional<core::IssueId> issue_id = {};
  std::optional<core::AgentHomeId> home_id = {};  // a folder of this server
};

struct ProviderLease {
  std::string provider_lease_id;
  bj::object metadata = {};
};

// How a sandbox is found: our key, and the provider's own id once it has answered.
struct SandboxName {
  std::optional<core::SandboxId> key = {};
  std::optional<std::string> provider_lease_id = {};
};

BOOST_DEFINE_ENUM_CLASS(LeaseEnd, released, expired, failed)

// A lease that was returned and may be reused.
struct ReusableLease {
  std::optional<std::string> provider_lease_id = {};
  bj::object metadata = {};
};

// Every operation that takes a config rejects another provider's config.
class Provider {
 public:
  virtual ~Provider() = default;

  virtual std::string_view key() const = 0;

  // `unprocessable`, with the field's pointer, for a config that names something that does not
  // exist.
  virtual Task<Verdict> validate(bj::object config) = 0;
  virtual Task<Verdict> probe(bj::object config) = 0;

  virtual Task<ProviderLease> acquire(AcquireLease request) = 0;
  // Empty if the sandbox no longer exists, which is not an error.
  virtual Task<std::optional<ProviderLease>> resume(bj::object config,
                                                    std::string provider_lease_id) = 0;
  virtual Task<> release(bj::object config, SandboxName name, LeaseEnd how) = 0;
  // May be repeated: succeeds if it no longer exists.
  virtual Task<> destroy(bj::object config, SandboxName name) = 0;

  virtual bool matches(const bj::object& config, const ReusableLease& lease) const = 0;
  // The config with which a lease was made; empty if the metadata is not this provider's.
  virtual std::optional<bj::object> config_from(const bj::object& lease_metadata) const = 0;

  // Optional operations: execution_unsupported if the provider lacks them.
  // Captures a sandbox at this moment, so that others can start from it. It keeps running.
  // Repeating the request captures once.
  virtual Task<execution::CapturedTemplate> capture_template(bj::object config, SandboxName name,
                                                             execution::CaptureTemplate request);
  // Returns whether there was something to delete. May be repeated. image_in_use while sandboxes or
  // other templates are based on it.
  virtual Task<bool> delete_template(bj::object config, execution::DeleteTemplate request);
  // What differs from what the sandbox started from. Bounded.
  virtual Task<execution::Changes> changes(bj::object config, SandboxName name);
  // Stops all processes until thaw().
  virtual Task<> freeze(bj::object config, SandboxName name);
  virtual Task<> thaw(bj::object config, SandboxName name);

  // Runs commands in its sandboxes; nullptr if the provider cannot.
  virtual execution::Execution* execution() { return nullptr; }
  // Whether its sandboxes are processes and files of the server that made them.
  virtual bool stays_on_its_server() const { return false; }
  // The sandboxes that still have something on this machine, whether or not the server knows them.
  virtual Task<std::vector<core::SandboxId>> held() { co_return std::vector<core::SandboxId>{}; }
  // The same for templates.
  virtual Task<std::vector<core::TemplateId>> held_templates() {
    co_return std::vector<core::TemplateId>{};
  }
  // Closes connections; what they hold lives on. Called last.
  virtual Task<> close() { co_return Result<>{}; }
};

// `Sandbox provider "<own>" received config for provider "<other>".`
Result<> check_config_is_for(std::string_view own_key, const bj::object& config);

}  // namespace berth::providers
