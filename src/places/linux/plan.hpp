#pragma once

#include "base/json/json.hpp"
#include "core/config/linux_config.hpp"
#include "images/image_user.hpp"
#include "keeper/protocol/messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Converts a sandbox request to the keeper's plan, and its result back.
namespace berth::places {

// What a sandbox's root is built on. Without layers: this machine's own /usr.
struct RootLayers {
  std::vector<std::string> layers = {};        // directories, bottom to top
  bool over_host = false;                      // this machine's own /usr is below the layers
  std::vector<std::string> environment = {};   // NAME=value, for names that a command does not set
  std::string workdir = {};                    // empty: the default
  std::optional<images::ImageUser> user = {};  // absent: the default
};

// The user of commands inside, and its home.
struct InsideUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};
  std::string home = {};
};
BOOST_DESCRIBE_STRUCT(InsideUser, (), (uid, gid, groups, home))

inline constexpr std::string_view usual_workdir = "/workspace";
// The agent's home, separate from the home that an image or template has for its user.
inline constexpr std::string_view agent_home_inside = "/home/agent";
inline constexpr std::string_view usual_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string workdir_of(const core::LinuxConfig& config, const RootLayers& root);
// The user named by the config, else by the image, else the default user.
InsideUser user_of(const core::LinuxConfig& config, const RootLayers& root);

// Sets a limit on everything, even if the config does not.
keeper::sandbox::Plan plan_of(const core::LinuxConfig& config, const RootLayers& root);

// A limit that the config names is required, unless the config states the minimum isolation:
// `isolation_too_weak` if one is not in force.
Result<> expect_limits_in_force(const core::LinuxConfig& config, const keeper::Confined& confined);

// {level, features, missing: [{feature, reason, remedy}], remedy}; the last is the first command
// that would make it stronger.
bj::object isolation_of(const keeper::Confined& confined);

}  // namespace berth::places
