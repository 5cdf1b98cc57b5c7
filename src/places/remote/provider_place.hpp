#pragma once

#include "places/remote/provider.hpp"
#include "plugins/supervisor.hpp"

namespace berth::plugins {

// Where a verb runs, and with what. The config holds secrets in plain text.
struct RemoteProvider::Place {
  std::shared_ptr<Supervisor> plugin;
  DriverPlace driver;
  bj::object stored_config = {};    // secret ids
  bj::object config = {};           // as the worker is given it
  bj::object base = {};             // the fields that every call has
  bj::value lease = {};             // {providerLeaseId, metadata, expiresAt}
  GivenSecrets::Hold secrets = {};  // secrets of the config
};

}  // namespace berth::plugins
