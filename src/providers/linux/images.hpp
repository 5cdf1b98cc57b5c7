#pragma once

#include "core/ids.hpp"
#include "images/template_store.hpp"
#include "providers/linux/plan.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace berth::providers {

// How long something is held for a sandbox: until it is released, by whichever server is there by
// then; or no longer than this process lives, for sandboxes that nobody else knows of.
enum class HoldLife { until_released, of_process };

// The images and templates of this machine, as sandboxes use them. All of it may block.
class HeldImages {
 public:
  // The folders are made when something in them is first asked for; "host" needs none.
  HeldImages(std::string images, std::string templates, HoldLife life = HoldLife::until_released);

  // What the root is built on: the config's template, or its image. It stays until the holder lets
  // go of it.
  Result<RootLayers> hold(const core::LinuxConfig& config, const std::string& holder) const;
  // The same without holding it: for a sandbox whose holder has it.
  Result<RootLayers> layers_for(const core::LinuxConfig& config) const;
  // Lets go of whatever the holder has. Nothing is fine.
  Result<> release(const std::string& holder) const;

  // Which images environments name, so that nobody collects them.
  Result<> note_environments(const std::vector<images::EnvironmentImage>& all) const;

  // The templates that are on this machine's disk.
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
  std::shared_ptr<Pins> pins_;  // where nothing is held for longer than this process lives
};

// Empty when something but the host's own image may be held for a sandbox of this config.
std::string only_host_of(const core::LinuxConfig& config);

}  // namespace berth::providers
