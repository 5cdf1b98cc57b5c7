#pragma once

#include "base/json/json.hpp"
#include "core/config/linux_config.hpp"
#include "images/image_user.hpp"
#include "keeper/protocol/messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// From what was asked of a sandbox to what the keeper is told, and back to what it became.
namespace berth::providers {

// What the root of a sandbox is built on. Without layers: this machine's own /usr.
struct RootLayers {
  std::vector<std::string> layers = {};        // directories, bottom to top
  bool over_host = false;                      // this machine's own /usr is below the layers
  std::vector<std::string> environment = {};   // NAME=value, for what a command is not given
  std::string workdir = {};                    // empty: the usual one
  std::optional<images::ImageUser> user = {};  // none: the usual one
};

// Who commands are inside, and where they are at home.
struct InsideUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};
  std::string home = {};
};
BOOST_DESCRIBE_STRUCT(InsideUser, (), (uid, gid, groups, home))

inline constexpr std::string_view usual_workdir = "/workspace";
// Where an agent is at home, beside the home that an image or template has for its user.
inline constexpr std::string_view agent_home_inside = "/home/agent";
inline constexpr std::string_view usual_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string workdir_of(const core::LinuxConfig& config, const RootLayers& root);
// Whom the config names, or else the image, or else the usual user.
InsideUser user_of(const core::LinuxConfig& config, const RootLayers& root);

// Asks for a limit on everything, also where the config does not.
keeper::sandbox::Plan plan_of(const core::LinuxConfig& config, const RootLayers& root);

// A limit that the config names is a demand, unless the config says how little isolation will do:
// `isolation_too_weak` where one is not in force.
Result<> expect_limits_in_force(const core::LinuxConfig& config, const keeper::Confined& confined);

// {level, features, missing: [{feature, reason, remedy}], remedy}; the last names the first
// command that would make it stronger.
bj::object isolation_of(const keeper::Confined& confined);

}  // namespace berth::providers
