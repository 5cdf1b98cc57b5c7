#pragma once

#include "places/lacks.hpp"
#include "places/place.hpp"

#include <type_traits>

namespace berth::engine {

namespace need_detail {

template <places::Lack what>
constexpr auto ability_for() {
  using places::Abilities;
  using enum places::Lack;
  if constexpr (what == commands) {
    return &Abilities::commands;
  } else if constexpr (what == files) {
    return &Abilities::files;
  } else if constexpr (what == usage) {
    return &Abilities::usage;
  } else if constexpr (what == port || what == open_ports) {
    return &Abilities::ports;
  } else if constexpr (what == egress) {
    return &Abilities::egress;
  } else if constexpr (what == capture || what == template_deletion || what == changes) {
    return &Abilities::snapshots;
  } else if constexpr (what == freeze || what == thaw) {
    return &Abilities::freezer;
  } else {
    return &Abilities::logins;
  }
}

}  // namespace need_detail

template <places::Lack what>
using AbilityFor = std::remove_cvref_t<decltype(std::declval<places::Abilities>().*
                                                need_detail::ability_for<what>())>;

// The ability that an operation needs, or the refusal if the place lacks it. The only check of that
// kind: what a place cannot do for one lease, the ability itself refuses.
template <places::Lack what>
Result<AbilityFor<what>> need(places::Place& place, const places::PlaceRef& ref,
                              const std::string& detail = {}) {
  const places::Abilities abilities = place.abilities();
  const AbilityFor<what> found = abilities.*need_detail::ability_for<what>();
  if (found != nullptr) return found;
  // If nothing can run there, that is the reason for everything that concerns its inside.
  constexpr bool is_inside = what < places::Lack::capture;
  const bool is_empty = is_inside && abilities.commands == nullptr;
  return places::lacks(is_empty ? places::Lack::commands : what, ref, detail);
}

}  // namespace berth::engine
