#pragma once

#include "core/config/bindings.hpp"
#include "core/enums.hpp"

namespace berth::core {

// An adapter's config in stored shape: every field is checked, `env` is canonical.
struct AdapterConfigForStore {
  bj::object config;
  std::vector<BoundRef> refs;
};

// A key that the adapter does not know is refused, with the nearest one that it knows, unless the
// config that is stored already has it: configs of older servers go on to work.
Result<AdapterConfigForStore> normalize_adapter_config(AdapterType adapter,
                                                       const bj::object& config, PlainSecrets plain,
                                                       const bj::object& stored = {});

}  // namespace berth::core
