#pragma once

#include "base/secret.hpp"

#include <span>
#include <vector>

namespace berth::core {

// The values that one run's output must not show, without duplicates: a run may receive the same
// value many times.
class HiddenValues {
 public:
  // False when there is nothing new to hide: the value is already known, or too short to hide.
  bool add(const Secret& value);
  std::span<const Secret> all() const { return values_; }
  bool empty() const { return values_.empty(); }

 private:
  std::vector<Secret> values_;
};

}  // namespace berth::core
