#include "providers/linux/images.hpp"

#include "images/image_store.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace berth::providers {

Result<RootLayers> HeldImages::hold(const std::string& image, const std::string& holder) const {
  if (image == images::host_name) return RootLayers{};
  BERTH_TRY(const images::ImageStore store, images::ImageStore::open(folder_));
  BERTH_TRY(const images::Image found, store.find(image));
  if (found.kind == images::ImageKind::host) return RootLayers{};
  BERTH_DO(store.hold(found.digest, holder));
  RootLayers root{.layers = {store.root_of(found)}, .workdir = found.config.workdir};
  for (const auto& [name, value] : found.config.env) root.environment.push_back(name + "=" + value);
  return root;
}

Result<> HeldImages::release(const std::string& holder) const {
  struct stat there{};
  if (::stat(folder_.c_str(), &there) != 0) return {};
  BERTH_TRY(const images::ImageStore store, images::ImageStore::open(folder_));
  BERTH_TRY(const std::vector<images::Image> all, store.list());
  for (const images::Image& image : all) {
    if (std::ranges::find(image.holders, holder) == image.holders.end()) continue;
    BERTH_DO(store.release(image.digest, holder));
  }
  return {};
}

}  // namespace berth::providers
