#pragma once

#include "base/result.hpp"
#include "images/image.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The user that an image specifies for its processes.
namespace berth::images {

struct ImageUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};  // besides gid
  std::string home = {};                   // empty: the image has no usable one

  friend bool operator==(const ImageUser&, const ImageUser&) = default;
};

// The files in which an image names its users and groups; a missing one is empty.
struct Accounts {
  std::string passwd = {};
  std::string group = {};
};

// "name", "uid", "name:group" or "uid:gid". A name must be found, a number need not. Without a
// group the files decide. Pure.
Result<ImageUser> find_user(std::string_view spelled, const Accounts& accounts);

// The user from the config, looked up in the tree's files, where no link leads out. Requires an
// image that names a user. `image_invalid` names the image and the user. Blocks.
Result<ImageUser> user_of(const Image& image, const std::string& root);

}  // namespace berth::images
