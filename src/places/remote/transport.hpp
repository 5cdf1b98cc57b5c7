#pragma once

#include "plugins/host.hpp"
#include "plugins/manifest/routes.hpp"
#include "plugins/supervisor.hpp"

// The names of the plugin transport that this folder uses.
namespace berth::places::remote {

using plugins::CallFailure;
using plugins::CallResult;
using plugins::Dialect;
using plugins::DriverDeclaration;
using plugins::DriverPlace;
using plugins::GivenSecrets;
using plugins::Host;
using plugins::LiveOutput;
using plugins::PluginCall;
using plugins::Stream;
using plugins::StreamEnd;
using plugins::Supervisor;
using plugins::to_error;

}  // namespace berth::places::remote
