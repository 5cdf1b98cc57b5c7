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

// The facts of metadata_of, as a lease has them. A row of an older server may lack some.
struct LinuxLease {
  std::optional<std::string> provider;
  bool reuse_lease = false;
  std::optional<std::string> remote_cwd;
  std::vector<std::string> image_environment;
  std::optional<InsideUser> user;
  std::optional<bj::object> config;
  std::string box;
  std::optional<std::string> agent_home;

  // Only a sandbox of this provider has recorded its config here.
  std::optional<bj::object> own_config() const;
  std::string cwd() const;
  // The user as which the lease's commands run.
  InsideUser user_for(const core::LinuxConfig& wanted) const;
};
BOOST_DESCRIBE_STRUCT(LinuxLease, (),
                      (provider, reuse_lease, remote_cwd, image_environment, user, config, box,
                       agent_home))

LinuxLease linux_lease(const bj::object& metadata);

// Whether such a sandbox can have the egress that the config requests.
Result<> check_ways_out(const core::LinuxConfig& config, const keeper::Confined& confined);

}  // namespace berth::places
