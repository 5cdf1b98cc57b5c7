#pragma once

#include "engine/runs/runs.hpp"
#include "http/route.hpp"

namespace berth::http {

// Serves one client that is attached to a run, until the run is over and all its output was sent,
// or the client disconnects. The frames are those of core/output/attach.hpp. Every caller that may
// read the run sees its output; stdin, sizes, signals and cancel need the permission to operate.
Task<> attach(engine::Runs& runs, core::Call call, core::RunId run, std::int64_t offset,
              Socket& socket);

}  // namespace berth::http
