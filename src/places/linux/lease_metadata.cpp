#include "places/linux/lease_metadata.hpp"

#include "base/json/loose.hpp"
#include "core/rows/environment.hpp"

namespace berth::places {

using core::LinuxConfig;

std::string folder_id_of(const PlaceRef& lease) {
  return lease.sandbox_id ? lease.sandbox_id->str() : lease.key.str();
}

bj::object config_of(const PlaceRef& lease) {
  if (loose::text_at(lease.metadata, "provider") != core::linux_provider) return lease.config;
  const bj::value* const config = lease.metadata.if_contains("config");
  return config != nullptr && config->is_object() ? config->get_object() : lease.config;
}

bool is_minimal(const keeper::Confined& confined) {
  return confined.level == keeper::sandbox::Level::minimal;
}

std::string box_of(const keepers::KeptFolder& folder) {
  return folder.keeper() + "/" + std::string{keeper::sandbox::box_folder};
}

std::string box_in(const bj::object& metadata) {
  return loose::text_at(metadata, "box").value_or("");
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

std::vector<std::string> image_environment(const bj::object& metadata) {
  const bj::value* entries = metadata.if_contains("imageEnvironment");
  if (entries == nullptr) return {};
  return decode<std::vector<std::string>>(*entries).value_or(std::vector<std::string>{});
}

InsideUser user_in(const bj::object& metadata, const LinuxConfig& config) {
  const bj::value* user = metadata.if_contains("user");
  if (user == nullptr) return user_of(config, {});
  return decode<InsideUser>(*user).value_or(user_of(config, {}));
}

Result<> check_ways_out(const LinuxConfig& config, const keeper::Confined& confined) {
  if (!is_minimal(confined) || !config.egress) return {};
  return fail(Errc::sandbox_unavailable, "the sandbox could not be made: egress needs namespaces",
              "leave egress out, or: " + confined.missing.front().remedy);
}

}  // namespace berth::places
