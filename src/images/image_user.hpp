#pragma once

#include "base/result.hpp"
#include "images/image.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// As whom an image wants its processes to run.
namespace berth::images {

struct ImageUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};  // besides gid
  std::string home = {};                   // empty: the image knows none that a process could have

  friend bool operator==(const ImageUser&, const ImageUser&) = default;
};

// The files in which an image names its users and groups; what it does not have is empty.
struct Accounts {
  std::string passwd = {};
  std::string group = {};
};

// "name", "uid", "name:group" or "uid:gid". A name is looked up, a number need not be there.
// Without a group it is in those that the files say. Pure.
Result<ImageUser> find_user(std::string_view spelled, const Accounts& accounts);

// What the config says, by the files of the tree, where no link leads out of. An image that names
// nobody has no answer here. `image_invalid` names the image and the user. Blocks.
Result<ImageUser> user_of(const Image& image, const std::string& root);

}  // namespace berth::images
