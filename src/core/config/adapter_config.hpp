#pragma once

#include "core/config/bindings.hpp"
#include "core/enums.hpp"

namespace berth::core {

// An adapter's config in stored form: every field is checked and `env` is canonical.
struct AdapterConfigForStore {
  bj::object config;
  std::vector<BoundRef> refs;
};

// Rejects a key that the adapter does not know, and suggests the nearest known one. Keys already in
// the stored config are accepted, so that configs from older servers keep working.
Result<AdapterConfigForStore> normalize_adapter_config(AdapterType adapter,
                                                       const bj::object& config, PlainSecrets plain,
                                                       const bj::object& stored = {});

}  // namespace berth::core
