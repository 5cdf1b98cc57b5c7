#pragma once

#include "app/places.hpp"
#include "engine/services.hpp"

namespace berth::app {

struct UpkeepOptions {
  std::int64_t image_age_hours = 0;  // of images that nobody uses, before they go; 0: they stay
};

// What the places of this machine need: sandboxes that are ready before the first run asks, for
// environments that want some, as soon as one has changed; and from time to time room on the disk.
// Until it is cancelled.
Task<> keep_up(engine::Services& services, Places& places, UpkeepOptions options,
               asio::any_io_executor executor);

}  // namespace berth::app
