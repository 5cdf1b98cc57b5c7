#pragma once

#include "cli/doctor/check.hpp"
#include "core/rows/wall.hpp"
#include "keeper/protocol/messages.hpp"

// The walls that the machine and the settings of its server make. What only the database knows is
// in engine/environments/walls.hpp.
namespace berth::cli::doctor {

// In the order in which they are shown. A wall that cannot be looked at is left out.
std::vector<core::Wall> examine_walls(const Machine& machine);

// Who may call the API.
core::Wall judge_callers(Mode mode, TrustedUsers trusted, unsigned server_user);
// What somebody between the client and the server can read.
core::Wall judge_listener(const Settings& settings);
// The way to a database that is not a file. `ssl_mode`: what counts where the URL names none.
core::Wall judge_database(const std::string& url, const std::string& ssl_mode);
// The files of the server; absent before its first start.
std::optional<core::Wall> check_home_files(const Machine& machine);
std::optional<core::Wall> check_key_file(const Machine& machine);
// What a sandbox that was made on this machine has.
std::vector<core::Wall> judge_sandbox(const Result<keeper::Confined>& made);

// Makes a sandbox that may be weak, and takes it down again; absent without a keeper.
std::optional<Result<keeper::Confined>> try_sandbox(const Machine& machine);

}  // namespace berth::cli::doctor
