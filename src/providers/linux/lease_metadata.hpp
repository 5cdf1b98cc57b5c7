#pragma once

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "core/config/linux_config.hpp"
#include "execution/kept_folder.hpp"
#include "keeper/protocol/messages.hpp"
#include "providers/linux/plan.hpp"

#include <string>
#include <vector>

// What a lease of a sandbox of this machine remembers of it.
namespace berth::providers {

// Beside the keeper's folder of a sandbox that may be reused: the metadata of its leases.
inline constexpr const char* facts_file = "/sandbox.json";
inline constexpr std::size_t facts_bytes_max = std::size_t{1} << 20;

bool is_minimal(const keeper::Confined& confined);
// Where the files lie of a sandbox that has no root of its own: commands know them by these paths.
std::string box_of(const execution::KeptFolder& folder);

// The box is empty where the sandbox has a root of its own.
bj::object metadata_of(const core::LinuxConfig& config, const RootLayers& root,
                       const keeper::Confined& confined, const std::string& box);
std::string box_in(const bj::object& metadata);
std::vector<std::string> image_environment(const bj::object& metadata);
// As whom the commands of a lease work.
InsideUser user_in(const bj::object& metadata, const core::LinuxConfig& config);

// Whether a sandbox like this one can have the way out that the config asks for.
Result<> check_ways_out(const core::LinuxConfig& config, const keeper::Confined& confined);

}  // namespace berth::providers
