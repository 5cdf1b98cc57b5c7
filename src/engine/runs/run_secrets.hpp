#pragma once

#include "core/rate_limit.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/upkeep/disk_reserve.hpp"
#include "store/runs.hpp"

namespace berth::engine {

// Whoever handles the output of runs: a value that a run has been given is hidden from then on.
class RedactionSink {
 public:
  virtual ~RedactionSink() = default;
  virtual void hide(const core::RunId& run, const Secret& value) = 0;
};

// How a value reaches a run: in a variable of its process, on request, or both.
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

// The only answer that holds the value of a secret.
struct RunSecretValue {
  std::string key;
  std::string value;
  std::int64_t version = 1;
};
BOOST_DESCRIBE_STRUCT(RunSecretValue, (), (key, value, version))

// What an agent asks for while it works: the secrets of its own variables and of those of the
// environment in which its run executes. All of it is `forbidden` for whoever holds no token of a
// run that is running.
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
  // A run may ask 120 times at once, and then once a second: each read is recorded. rate_limited
  // beyond that. Before the value leaves, it is noted on the run, and whichever server handles the
  // run's output hides it. timed_out when that server does not answer.
  Task<RunSecretValue> read(core::Call call, std::string key);

  // Where several servers share the store: hides what others have let runs of this one read. Until
  // it is cancelled.
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

// The values that a run has been given on request: for a server that takes over its output. Those
// of secrets that were deleted since are gone.
Task<std::vector<Secret>> values_given_to(Services& services, core::RunId run);

}  // namespace berth::engine
