#pragma once

#include "core/bindings.hpp"
#include "core/call.hpp"
#include "core/page.hpp"
#include "engine/means.hpp"

namespace berth::engine {

// What an administrator sets for the whole instance.
struct InstanceSettings {
  bool strict_secrets =
      false;  // plain values are refused for variables whose name looks like a secret
  std::int64_t answer_retention_hours =
      24;  // how long a repeated Idempotency-Key gets the same answer

  // Commands in sandboxes of plugins may be given their input while they run.
  bool enable_sandbox_duplex_bridge = false;

  core::PlainSecrets plain_secrets() const {
    return strict_secrets ? core::PlainSecrets::refused : core::PlainSecrets::allowed;
  }
};
BOOST_DESCRIBE_STRUCT(InstanceSettings, (),
                      (strict_secrets, answer_retention_hours, enable_sandbox_duplex_bridge))

struct UpdateSettings {
  Patch<bool> strict_secrets;
  Patch<std::int64_t> answer_retention_hours;
  Patch<bool> enable_sandbox_duplex_bridge;
};
BOOST_DESCRIBE_STRUCT(UpdateSettings, (),
                      (strict_secrets, answer_retention_hours, enable_sandbox_duplex_bridge))

Result<InstanceSettings> read_settings(store::Session& session);

class Settings {
 public:
  explicit Settings(Means& means) : means_(means) {}

  Task<core::Stored<InstanceSettings>> get(core::Call call);
  Task<core::Stored<InstanceSettings>> update(core::Call call, UpdateSettings change);

 private:
  Means& means_;
};

}  // namespace berth::engine
