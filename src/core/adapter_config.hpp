#pragma once

#include "core/bindings.hpp"
#include "core/enums.hpp"

namespace berth::core {

// An adapter's config in stored shape: the fields that Berth uses are checked, `env` is canonical,
// other keys pass through.
struct AdapterConfigForStore {
  bj::object config;
  std::vector<BoundRef> refs;
};

Result<AdapterConfigForStore> normalize_adapter_config(AdapterType adapter,
                                                       const bj::object& config,
                                                       PlainSecrets plain);

}  // namespace berth::core
