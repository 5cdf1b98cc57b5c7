#pragma once

#include "app/places.hpp"
#include "engine/services.hpp"

namespace berth::app {

struct UpkeepOptions {
  std::int64_t image_age_hours = 0;  // of unused images, before they are deleted; 0: kept
};

// Maintains this machine's places: ready sandboxes for environments that want some, updated as soon
// as one has changed; and from time to time disk space. Runs until it is cancelled.
Task<> keep_up(engine::Services& services, Places& places, UpkeepOptions options,
               asio::any_io_executor executor);

}  // namespace berth::app
