#pragma once

#include "base/async/task.hpp"
#include "execution/execution.hpp"
#include "providers/linux/plan.hpp"

#include <boost/asio/thread_pool.hpp>

#include <cstdint>
#include <string>
#include <vector>

// How the outside reaches into a sandbox that a keeper holds.
namespace berth::providers {

// Looks from the root of the sandbox, so that no link of its leads out of it. Blocks.
Result<> expect_folder_inside(const std::string& keeper_folder, const std::string& path);

// Its root, and who this user of the sandbox is outside. Blocks.
Result<execution::FileRoot> files_inside(const std::string& keeper_folder, const InsideUser& user);

// A connection to a port of its loopback, first of IPv4 and then of IPv6. `port_unreachable` when
// nobody listens there, or nobody accepts in time. The pool outlives the answer.
Task<Fd> dial_inside(asio::thread_pool& pool, std::string keeper_folder, std::uint16_t port);

}  // namespace berth::providers
