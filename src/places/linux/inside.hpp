#pragma once

#include "base/async/task.hpp"
#include "places/files.hpp"
#include "places/linux/plan.hpp"

#include <boost/asio/thread_pool.hpp>

#include <cstdint>
#include <string>
#include <vector>

// How the server reaches into a sandbox that a keeper holds.
namespace berth::places {

// Resolves the path from the sandbox's root, so that no link leads out of it. Blocks.
Result<> expect_folder_inside(const std::string& keeper_folder, const std::string& path);

// Its root directory, and the host ids of this sandbox user. Blocks.
Result<FileRoot> files_inside(const std::string& keeper_folder, const InsideUser& user);

// Connects to a port of its loopback, first over IPv4 and then over IPv6. `port_unreachable` if no
// process listens there or accepts in time. The pool must outlive the task.
Task<Fd> dial_inside(asio::thread_pool& pool, std::string keeper_folder, std::uint16_t port);

}  // namespace berth::places
