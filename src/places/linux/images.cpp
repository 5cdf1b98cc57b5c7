#include "places/linux/images.hpp"

#include "images/image_store.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace berth::places {

// What this process holds, by holder.
class HeldImages::Pins {
 public:
  void add(const std::string& holder, Fd pin) {
    const std::scoped_lock alone{mutex_};
    held_[holder].push_back(std::move(pin));
  }
  void drop(const std::string& holder) {
    const std::scoped_lock alone{mutex_};
    held_.erase(holder);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Fd>> held_;
};

namespace {

bool is_folder_there(const std::string& folder) {
  struct stat seen{};
  return ::stat(folder.c_str(), &seen) == 0;
}

Result<RootLayers> layers_of(const images::ImageStore& store, const images::Image& image,
                             const core::LinuxConfig& config) {
  if (image.kind == images::ImageKind::host) return RootLayers{.over_host = true};
  RootLayers root{.layers = {store.root_of(image)}, .workdir = image.config.workdir};
  // The image's user is not needed if the config names one.
  if (!config.user && !image.config.user.empty()) {
    BERTH_TRY(root.user, images::user_of(image, store.root_of(image)));
  }
  for (const auto& [name, value] : image.config.env) root.environment.push_back(name + "=" + value);
  return root;
}

}  // namespace

HeldImages::HeldImages(std::string images, std::string templates, HoldLife life)
    : images_(std::move(images)),
      templates_(std::move(templates)),
      pins_(life == HoldLife::of_process ? std::make_shared<Pins>() : nullptr) {}

Result<> HeldImages::hold_image(const images::ImageStore& store, const std::string& digest,
                                const std::string& holder) const {
  if (!pins_) return store.hold(digest, holder);
  BERTH_TRY(Fd pin, store.pin(digest));
  pins_->add(holder, std::move(pin));
  return {};
}

Result<> HeldImages::hold_template(const images::TemplateStore& templates, const std::string& id,
                                   const std::string& holder) const {
  if (!pins_) return templates.hold(id, holder);
  BERTH_TRY(Fd pin, templates.pin(id));
  pins_->add(holder, std::move(pin));
  return {};
}

Result<> HeldImages::note_environments(const std::vector<images::EnvironmentImage>& all) const {
  if (all.empty() && !is_folder_there(images_)) return {};
  BERTH_TRY(const images::ImageStore store, images::ImageStore::open(images_));
  return store.note_environments(all);
}

Result<> HeldImages::with_stores(const Use& use) const {
  BERTH_TRY(const images::ImageStore store, images::ImageStore::open(images_));
  BERTH_TRY(const images::TemplateStore templates, images::TemplateStore::open(templates_, store));
  return use(store, templates);
}

// Holds it first if there is a holder, so that it is not deleted while it is read.
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
      if (holds) BERTH_DO(hold_image(store, found.digest, *holder));
      BERTH_TRY(root, layers_of(store, found, config));
      return {};
    }
    BERTH_TRY(const images::Template top, templates.find(*config.template_));
    // A template holds everything below it.
    if (holder != nullptr) BERTH_DO(hold_template(templates, top.id, *holder));
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
  if (!is_folder_there(templates_)) return found;
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
  if (!is_folder_there(templates_)) return {};
  BERTH_TRY(const images::TemplateStore templates, images::TemplateStore::open(templates_, store));
  BERTH_TRY(const std::vector<images::Template> all, templates.list());
  for (const images::Template& one : all) BERTH_DO(templates.release(one.id, holder));
  return {};
}

Result<> HeldImages::release(const std::string& holder) const {
  if (pins_) {
    pins_->drop(holder);
    return {};
  }
  if (!is_folder_there(images_)) return {};
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

}  // namespace berth::places
