#pragma once

#include "cli/doctor/check.hpp"
#include "core/rows/wall.hpp"
#include "keeper/protocol/messages.hpp"

// The walls that depend on the machine and its server's settings. Those that depend on the database
// are in engine/environments/walls.hpp.
namespace berth::cli::doctor {

// In display order. A wall that cannot be examined is left out.
std::vector<core::Wall> examine_walls(const Machine& machine);

// Which callers can use the API.
core::Wall judge_callers(Mode mode, TrustedUsers trusted, unsigned server_user);
// What an attacker between the client and the server can read.
core::Wall judge_listener(const Settings& settings);
// The connection to a database that is not a file. `ssl_mode`: the default where the URL names
// none.
core::Wall judge_database(const std::string& url, const std::string& ssl_mode);
// The server's files; absent before its first start.
std::optional<core::Wall> check_home_files(const Machine& machine);
std::optional<core::Wall> check_key_file(const Machine& machine);
// The walls of a sandbox that was created on this machine.
std::vector<core::Wall> judge_sandbox(const Result<keeper::Confined>& made);

// Creates a sandbox that may be weak, and destroys it again; absent without a keeper.
std::optional<Result<keeper::Confined>> try_sandbox(const Machine& machine);

}  // namespace berth::cli::doctor
