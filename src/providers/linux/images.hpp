#pragma once

#include "core/ids.hpp"
#include "images/template_store.hpp"
#include "providers/linux/plan.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::providers {

// The images and templates of this machine, as sandboxes use them. All of it may block.
class HeldImages {
 public:
  // The folders are made when something in them is first asked for; "host" needs none.
  HeldImages(std::string images, std::string templates)
      : images_(std::move(images)), templates_(std::move(templates)) {}

  // What the root is built on: the config's template, or its image. It stays until the holder lets
  // go of it.
  Result<RootLayers> hold(const core::LinuxConfig& config, const std::string& holder) const;
  // The same without holding it: for a sandbox whose holder has it.
  Result<RootLayers> layers_for(const core::LinuxConfig& config) const;
  // Lets go of whatever the holder has. Nothing is fine.
  Result<> release(const std::string& holder) const;

  // The templates that are on this machine's disk.
  Result<std::vector<core::TemplateId>> templates() const;

  using Use = std::function<Result<>(const images::ImageStore&, const images::TemplateStore&)>;
  Result<> with_stores(const Use& use) const;

 private:
  Result<RootLayers> find(const core::LinuxConfig& config, const std::string* holder) const;
  Result<> release_templates(const images::ImageStore& store, const std::string& holder) const;

  std::string images_;
  std::string templates_;
};

// Empty when something but the host's own image may be held for a sandbox of this config.
std::string only_host_of(const core::LinuxConfig& config);

}  // namespace berth::providers
