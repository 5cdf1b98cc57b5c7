#pragma once

#include "base/async/task.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <sys/types.h>

#include <chrono>

namespace berth::keepers {

// Waits for a child of this process and reaps it, so that no zombie is left; other children are not
// touched. If cancelled, it leaves the child unreaped.
Task<> reap(asio::any_io_executor executor, pid_t child);

// Whether the recorded process ends within the limit. Blocks.
bool has_ended(const keeper::ProcessIdentity& identity, std::chrono::milliseconds limit);

// Sends SIGKILL to exactly the recorded process. Succeeds if it has already ended.
Result<> kill_keeper(const keeper::ProcessIdentity& identity);

}  // namespace berth::keepers
