#pragma once

#include "base/secret.hpp"

#include <span>
#include <vector>

namespace berth::core {

// The values that the output of one run must not show, each once: a run may be given the same value
// again and again.
class HiddenValues {
 public:
  // False when there is nothing new to hide: the value is known, or too short to be hidden.
  bool add(const Secret& value);
  std::span<const Secret> all() const { return values_; }
  bool empty() const { return values_.empty(); }

 private:
  std::vector<Secret> values_;
};

}  // namespace berth::core
