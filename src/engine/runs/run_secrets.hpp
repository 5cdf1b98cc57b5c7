#pragma once

#include "core/rate_limit.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/upkeep/disk_reserve.hpp"
#include "store/runs.hpp"

namespace berth::engine {

// The handler of run output: hides a value from the moment a run receives it.
class RedactionSink {
 public:
  virtual ~RedactionSink() = default;
  virtual void hide(const core::RunId& run, const Secret& value) = 0;
};

// How a value reaches a run: in a process variable, on request, or both.
BOOST_DEFINE_ENUM_CLASS(SecretDelivery, env, api, both)

struct RunSecret {
  std::string key;
  std::string name;
  std::optional<std::string> description;
  SecretDelivery delivery = SecretDelivery::env;
  core::SecretProjection projection_class = core::SecretProjection::unclassified;
  std::int64_t latest_version = 1;
  std::string version_selector;
  std::int64_t resolved_version = 1;
  bj::object secret_ref;
};
BOOST_DESCRIBE_STRUCT(RunSecret, (),
                      (key, name, description, delivery, projection_class, latest_version,
                       version_selector, resolved_version, secret_ref))

struct RunSecretList {
  std::vector<RunSecret> secrets;
};
BOOST_DESCRIBE_STRUCT(RunSecretList, (), (secrets))

// The only response that contains a secret's value.
struct RunSecretValue {
  std::string key;
  std::string value;
  std::int64_t version = 1;
};
BOOST_DESCRIBE_STRUCT(RunSecretValue, (), (key, value, version))

// What an agent may request while it works: the secrets of its own variables and of its run's
// environment. `forbidden` for any caller without the token of a running run.
class RunSecrets {
 public:
  // `node` is this server: the sink handles the output of the runs that it works on.
  RunSecrets(Services& services, Secrets& secrets, RedactionSink& sink, core::NodeId node,
             DiskReserve reserve)
      : services_(services),
        secrets_(secrets),
        sink_(sink),
        node_(std::move(node)),
        reserve_(std::move(reserve)) {}

  Task<RunSecretList> list(core::Call call);
  // A run may ask 120 times at once, and then once a second, because each read is recorded; beyond
  // that rate_limited. Before the value is returned, it is recorded on the run, and the server that
  // handles the run's output hides it. timed_out when that server does not respond.
  Task<RunSecretValue> read(core::Call call, std::string key);

  // If several servers share the store: hides the values that other servers returned to this
  // server's runs. Runs until cancelled.
  Task<> watch();

 private:
  Result<> expect_room(const core::Caller& who);
  Task<> hide_what_others_noted();
  Task<> wait_until_hidden(core::Caller who, store::RunRedaction noted);

  Services& services_;
  Secrets& secrets_;
  RedactionSink& sink_;
  core::NodeId node_;
  DiskReserve reserve_;
  core::RateLimit reads_;
};

// The values that a run received on request, for a server that takes over its output. Without those
// of secrets deleted since.
Task<std::vector<Secret>> values_given_to(Services& services, core::RunId run);

}  // namespace berth::engine
