#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "cli/print/console.hpp"

#include <string>
#include <vector>

namespace berth::cli {

struct DebianTree {
  std::string suite;                       // empty: this machine's own
  std::vector<std::string> packages = {};  // in addition to the essential ones
};

// Builds a Debian tree with mmdebstrap from this machine's apt sources. The tar is in an unnamed
// file, so that nothing is left behind. mmdebstrap's output is shown on a terminal, or kept for the
// error.
Result<Fd> make_debian_tree(const DebianTree& wanted, const std::string& folder,
                            const Console& console);

}  // namespace berth::cli
