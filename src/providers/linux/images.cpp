#include "providers/linux/images.hpp"

#include "images/image_store.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace berth::providers {
namespace {

bool is_there(const std::string& folder) {
  struct stat seen{};
  return ::stat(folder.c_str(), &seen) == 0;
}

Result<RootLayers> layers_of(const images::ImageStore& store, const images::Image& image,
                             const core::LinuxConfig& config) {
  if (image.kind == images::ImageKind::host) return RootLayers{.over_host = true};
  RootLayers root{.layers = {store.root_of(image)}, .workdir = image.config.workdir};
  // Whom nobody asks for need not be known.
  if (!config.user && !image.config.user.empty()) {
    BERTH_TRY(root.user, images::user_of(image, store.root_of(image)));
  }
  for (const auto& [name, value] : image.config.env) root.environment.push_back(name + "=" + value);
  return root;
}

}  // namespace

Result<> HeldImages::with_stores(const Use& use) const {
  BERTH_TRY(const images::ImageStore store, images::ImageStore::open(images_));
  BERTH_TRY(const images::TemplateStore templates, images::TemplateStore::open(templates_, store));
  return use(store, templates);
}

// Holds it first where there is a holder, so that it stays while it is looked at.
Result<RootLayers> HeldImages::find(const core::LinuxConfig& config,
                                    const std::string* holder) const {
  const std::string image = config.image.value_or(std::string{images::host_name});
  if (!config.template_ && image == images::host_name) return RootLayers{.over_host = true};
  RootLayers root;
  const auto look = [&](const images::ImageStore& store,
                        const images::TemplateStore& templates) -> Result<> {
    if (!config.template_) {
      BERTH_TRY(const images::Image found, store.find(image));
      const bool holds = holder != nullptr && found.kind != images::ImageKind::host;
      if (holds) BERTH_DO(store.hold(found.digest, *holder));
      BERTH_TRY(root, layers_of(store, found, config));
      return {};
    }
    BERTH_TRY(const images::Template top, templates.find(*config.template_));
    // A template holds what is below it.
    if (holder != nullptr) BERTH_DO(templates.hold(top.id, *holder));
    BERTH_TRY(const images::Image base, store.find(top.base_image));
    BERTH_TRY(root, layers_of(store, base, config));
    BERTH_TRY(const std::vector<std::string> above, templates.layers_of(top));
    root.layers.insert(root.layers.end(), above.rbegin(), above.rend());
    return {};
  };
  BERTH_DO(with_stores(look));
  return root;
}

Result<RootLayers> HeldImages::hold(const core::LinuxConfig& config,
                                    const std::string& holder) const {
  return find(config, &holder);
}

Result<RootLayers> HeldImages::layers_for(const core::LinuxConfig& config) const {
  return find(config, nullptr);
}

Result<std::vector<core::TemplateId>> HeldImages::templates() const {
  std::vector<core::TemplateId> found;
  if (!is_there(templates_)) return found;
  const auto look = [&](const images::ImageStore& /*store*/,
                        const images::TemplateStore& templates) -> Result<> {
    BERTH_TRY(const std::vector<images::Template> all, templates.list());
    for (const images::Template& one : all) {
      if (auto id = core::TemplateId::parse(one.id)) found.push_back(*std::move(id));
    }
    return {};
  };
  BERTH_DO(with_stores(look));
  return found;
}

Result<> HeldImages::release_templates(const images::ImageStore& store,
                                       const std::string& holder) const {
  if (!is_there(templates_)) return {};
  BERTH_TRY(const images::TemplateStore templates, images::TemplateStore::open(templates_, store));
  BERTH_TRY(const std::vector<images::Template> all, templates.list());
  for (const images::Template& one : all) BERTH_DO(templates.release(one.id, holder));
  return {};
}

Result<> HeldImages::release(const std::string& holder) const {
  if (!is_there(images_)) return {};
  BERTH_TRY(const images::ImageStore store, images::ImageStore::open(images_));
  BERTH_DO(release_templates(store, holder));
  BERTH_TRY(const std::vector<images::Image> all, store.list());
  for (const images::Image& image : all) {
    if (std::ranges::find(image.holders, holder) == image.holders.end()) continue;
    BERTH_DO(store.release(image.digest, holder));
  }
  return {};
}

std::string only_host_of(const core::LinuxConfig& config) {
  return config.template_ ? std::string{} : config.image.value_or(std::string{images::host_name});
}

}  // namespace berth::providers
