#pragma once

#include "places/remote/remote_place.hpp"

namespace berth::places::remote {

// Where a verb runs, and with what. The config holds secrets in plain text.
struct RemotePlace::Site {
  std::shared_ptr<Supervisor> plugin;
  DriverPlace driver;
  bj::object stored_config = {};    // secret ids
  bj::object config = {};           // as the worker is given it
  bj::object base = {};             // the fields that every call has
  bj::value lease = {};             // {providerLeaseId, metadata, expiresAt}
  GivenSecrets::Hold secrets = {};  // secrets of the config
};

}  // namespace berth::places::remote
