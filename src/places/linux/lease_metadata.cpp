#include "places/linux/lease_metadata.hpp"

#include "base/json/peek.hpp"
#include "core/rows/environment.hpp"

namespace berth::places {

using core::LinuxConfig;

std::string folder_id_of(const PlaceRef& lease) {
  return lease.sandbox_id ? lease.sandbox_id->str() : lease.key.str();
}

bj::object config_of(const PlaceRef& lease) {
  return linux_lease(lease.metadata).own_config().value_or(lease.config);
}

bool is_minimal(const keeper::Confined& confined) {
  return confined.level == keeper::sandbox::Level::minimal;
}

std::string box_of(const keepers::KeptFolder& folder) {
  return folder.keeper() + "/" + std::string{keeper::sandbox::box_folder};
}

bj::object metadata_of(const LinuxConfig& config, const RootLayers& root,
                       const keeper::Confined& confined, const std::string& box) {
  InsideUser user = user_of(config, root);
  user.home = box + user.home;
  bj::object metadata{{"provider", core::linux_provider},
                      {"reuseLease", config.reuse_lease.value_or(false)},
                      {"image", config.image.value_or("host")},
                      {"remoteCwd", box + workdir_of(config, root)},
                      {"imageEnvironment", encode(root.environment)},
                      {"user", encode(user)},
                      {"config", core::to_stored(config)},
                      {"isolation", isolation_of(confined)},
                      {"initPid", confined.init_pid}};
  if (!box.empty()) metadata["box"] = box;
  return metadata;
}

std::optional<bj::object> LinuxLease::own_config() const {
  return provider == core::linux_provider ? config : std::nullopt;
}

std::string LinuxLease::cwd() const {
  return remote_cwd.value_or(std::string{usual_workdir});
}

InsideUser LinuxLease::user_for(const LinuxConfig& wanted) const {
  return user ? *user : user_of(wanted, {});
}

LinuxLease linux_lease(const bj::object& metadata) {
  return read_loosely<LinuxLease>(metadata);
}

Result<> check_ways_out(const LinuxConfig& config, const keeper::Confined& confined) {
  if (!is_minimal(confined) || !config.egress) return {};
  return fail(Errc::sandbox_unavailable, "the sandbox could not be made: egress needs namespaces",
              "leave egress out, or: " + confined.missing.front().remedy);
}

}  // namespace berth::places
