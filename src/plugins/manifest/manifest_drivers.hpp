#pragma once

#include "plugins/manifest/manifest.hpp"
#include "plugins/manifest/manifest_rules.hpp"

namespace berth::plugins::rules {

// The entries of `environmentDrivers`; an unknown field is an error. Unknown sandbox capabilities
// are ignored with a warning, because newer plugins have some.
std::vector<DriverDeclaration> read_drivers(const ObjectReader& manifest,
                                            std::vector<Issue>& warnings);
// Replaces the old name of `supportsLoginPty` in a document whose drivers were read.
void fold_login_alias(bj::object& manifest);

}  // namespace berth::plugins::rules
