#pragma once

#include "engine/lease_terminals.hpp"
#include "http/route.hpp"

namespace berth::http {

// Serves one client in front of a terminal in a place that a lease holds, until its command has
// ended or the client goes. The frames are those of core/attach.hpp; what a run's `ended` says of
// the run, this one says of the command, as `exec`.
Task<> serve_terminal(engine::LeaseTerminals::Terminal terminal, std::uint64_t offset,
                      Socket& socket);

}  // namespace berth::http
