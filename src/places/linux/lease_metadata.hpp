#pragma once

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "core/config/linux_config.hpp"
#include "keeper/protocol/messages.hpp"
#include "keepers/kept_folder.hpp"
#include "places/linux/plan.hpp"
#include "places/place_ref.hpp"

#include <string>
#include <vector>

// What a lease records about its sandbox on this machine.
namespace berth::places {

// Next to the keeper's folder of a reusable sandbox: the metadata of its leases.
inline constexpr const char* facts_file = "/sandbox.json";
inline constexpr std::size_t facts_bytes_max = std::size_t{1} << 20;

// The name of a sandbox's folder and keeper.
std::string folder_id_of(const PlaceRef& lease);
// The config that a lease was made with: its environment's may have changed since.
bj::object config_of(const PlaceRef& lease);

bool is_minimal(const keeper::Confined& confined);
// Where the files of a sandbox without its own root are: commands see them at these paths.
std::string box_of(const keepers::KeptFolder& folder);

// The box is empty if the sandbox has its own root.
bj::object metadata_of(const core::LinuxConfig& config, const RootLayers& root,
                       const keeper::Confined& confined, const std::string& box);
std::string box_in(const bj::object& metadata);
std::vector<std::string> image_environment(const bj::object& metadata);
// The user as which a lease's commands run.
InsideUser user_in(const bj::object& metadata, const core::LinuxConfig& config);

// Whether such a sandbox can have the egress that the config requests.
Result<> check_ways_out(const core::LinuxConfig& config, const keeper::Confined& confined);

}  // namespace berth::places
