#pragma once

#include "places/place_ref.hpp"

#include <string>

namespace berth::places {

// What may be wanted of a place that it cannot do.
enum class Lack {
  commands,
  files,
  usage,
  port,        // the detail is its number
  open_ports,  // a look at which are open
  egress,
  capture,
  template_deletion,
  changes,
  freeze,
  thaw,
  login,  // the detail is the program that logs in
};

// `execution_unsupported`: what was wanted, of which place, and what to do instead.
std::unexpected<Error> lacks(Lack what, const PlaceRef& place, const std::string& detail = {});

// Whether a plugin made the place.
bool is_of_plugin(const PlaceRef& place);

}  // namespace berth::places
