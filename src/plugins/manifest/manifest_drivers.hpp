#pragma once

#include "plugins/manifest/manifest.hpp"
#include "plugins/manifest/manifest_rules.hpp"

namespace berth::plugins::rules {

// The entries of `environmentDrivers`, whose fields are all known to the format. Capabilities of
// sandboxes that are not known here are passed over with a warning: newer plugins have some.
std::vector<DriverDeclaration> read_drivers(const ObjectReader& manifest,
                                            std::vector<Issue>& warnings);
// Replaces the old name of `supportsLoginPty` in a document whose drivers were read.
void fold_login_alias(bj::object& manifest);

}  // namespace berth::plugins::rules
