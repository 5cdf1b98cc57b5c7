#pragma once

#include "core/ids.hpp"
#include "images/template_store.hpp"
#include "places/linux/plan.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace berth::places {

// How long an image is held for a sandbox: until it is released, by this or a later server; or at
// most as long as this process lives, for sandboxes that no other process knows.
enum class HoldLife { until_released, of_process };

// The images and templates of this machine, as sandboxes use them. Every function may block.
class HeldImages {
 public:
  // The folders are created on first use; "host" needs none.
  HeldImages(std::string images, std::string templates, HoldLife life = HoldLife::until_released);

  // What the root is built on: the config's template or its image. It is kept until the holder
  // releases it.
  Result<RootLayers> hold(const core::LinuxConfig& config, const std::string& holder) const;
  // The same without holding it: for a sandbox whose holder already has it.
  Result<RootLayers> layers_for(const core::LinuxConfig& config) const;
  // Releases everything that the holder has. Succeeds if there is nothing.
  Result<> release(const std::string& holder) const;

  // Records which images environments name, so that they are not collected.
  Result<> note_environments(const std::vector<images::EnvironmentImage>& all) const;

  // The templates on this machine's disk.
  Result<std::vector<core::TemplateId>> templates() const;

  using Use = std::function<Result<>(const images::ImageStore&, const images::TemplateStore&)>;
  Result<> with_stores(const Use& use) const;

 private:
  class Pins;

  Result<RootLayers> find(const core::LinuxConfig& config, const std::string* holder) const;
  Result<> hold_image(const images::ImageStore& store, const std::string& digest,
                      const std::string& holder) const;
  Result<> hold_template(const images::TemplateStore& templates, const std::string& id,
                         const std::string& holder) const;
  Result<> release_templates(const images::ImageStore& store, const std::string& holder) const;

  std::string images_;
  std::string templates_;
  std::shared_ptr<Pins> pins_;  // used if holds end with this process
};

// The config's image name, by default the host's; empty if it names a template.
std::string only_host_of(const core::LinuxConfig& config);

}  // namespace berth::places
