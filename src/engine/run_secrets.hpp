#pragma once

#include "base/secret.hpp"
#include "core/ids.hpp"

namespace berth::engine {

// Whoever handles the output of runs: a value that a run has been given is hidden from then on.
class RedactionSink {
 public:
  virtual ~RedactionSink() = default;
  virtual void hide(const core::RunId& run, const Secret& value) = 0;
};

}  // namespace berth::engine
