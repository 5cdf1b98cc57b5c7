#pragma once

#include "base/json/peek.hpp"
#include "core/rows/environment.hpp"

// What an environment's metadata decides about its leases and runs. It is not validated when it is
// saved: a value of another type counts as absent.
namespace berth::core {

struct EnvironmentPolicy {
  std::optional<std::string> lease_policy;
  std::optional<std::string> callback;  // "none": commands there are not given our address
  std::optional<double> max_concurrent_runs;
};
BOOST_DESCRIBE_STRUCT(EnvironmentPolicy, (), (lease_policy, callback, max_concurrent_runs))

inline EnvironmentPolicy policy_in(const Environment& environment) {
  return read_loosely<EnvironmentPolicy>(environment.metadata);
}

}  // namespace berth::core
