#pragma once

#include "base/async/task.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <sys/types.h>

#include <chrono>

namespace berth::execution {

// Waits for a child of this process and takes its exit status, so that no zombie is left; other
// children are not touched. Cancelled, it leaves the child to whoever inherits it.
Task<> reap(asio::any_io_executor executor, pid_t child);

// Whether the process that wrote the card has ended by then. Blocks.
bool has_ended(const keeper::ProcessIdentity& identity, std::chrono::milliseconds limit);

// SIGKILL to the very process that wrote the card. Gone already is fine.
Result<> kill_keeper(const keeper::ProcessIdentity& identity);

}  // namespace berth::execution
