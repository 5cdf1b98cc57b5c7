#pragma once

#include "providers/linux/plan.hpp"

#include <string>

namespace berth::providers {

// The images of this machine, as sandboxes use them. All of it may block.
class HeldImages {
 public:
  // The folder is made when an image is first asked for; "host" needs none.
  explicit HeldImages(std::string folder) : folder_(std::move(folder)) {}

  // What the root is built on; the image stays until the holder lets go of it.
  Result<RootLayers> hold(const std::string& image, const std::string& holder) const;
  // Lets go of whatever the holder has. Nothing is fine.
  Result<> release(const std::string& holder) const;

 private:
  std::string folder_;
};

}  // namespace berth::providers
