#pragma once

#include "places/absent.hpp"
#include "places/place.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::places {

// A lease or sandbox that still has something on this machine, and where.
struct HeldPlace {
  PlaceKey key;
  core::DriverKind driver = core::DriverKind::local;
  std::string provider = {};  // of a sandbox

  // Enough to destroy it, which is all that can be done with it.
  PlaceRef ref() const;
};
// A template that is stored on this machine, and its provider.
struct HeldTemplate {
  core::TemplateId id;
  std::string provider;
};

// This server's places. Filled once at start, by app/. Only this class knows which place serves a
// driver and a provider.
class Registry {
 public:
  // The place of a driver; for `sandbox`, of all its providers.
  void add(core::DriverKind driver, std::unique_ptr<Place> place);
  // The place of one provider of the driver `sandbox`.
  void add_provider(std::string provider, std::unique_ptr<Place> place);
  // The places of plugins: all other providers, and the driver `plugin`. They must outlive the
  // registry; their owner closes them.
  void add_plugins(Place& sandboxes, Place& drivers);

  // Valid as long as the registry. What a lease was made with is in its metadata and takes
  // precedence, because its environment's config may have changed.
  Result<Place*> find(core::DriverKind driver, const bj::object& config,
                      const bj::object& metadata = {}) const;
  Result<Place*> find(const PlaceRef& ref) const {
    return find(ref.driver, ref.config, ref.metadata);
  }

  // What all places of the driver still hold on this machine.
  Task<std::vector<HeldPlace>> held(core::DriverKind driver) const;
  Task<std::vector<HeldTemplate>> held_templates() const;
  // Closes every place but those of plugins; an error in one does not keep the others open.
  Task<> close();

 private:
  std::map<core::DriverKind, std::unique_ptr<Place>> drivers_;
  std::map<std::string, std::unique_ptr<Place>> providers_;
  Place* plugin_sandboxes_ = nullptr;
  Place* plugin_drivers_ = nullptr;
  std::unique_ptr<Absent> absent_ = std::make_unique<Absent>(core::DriverKind::sandbox);
};

}  // namespace berth::places
