#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "cli/print/console.hpp"

#include <string>
#include <vector>

namespace berth::cli {

struct DebianTree {
  std::string suite;                       // empty: this machine's own
  std::vector<std::string> packages = {};  // besides the essential ones
};

// Makes a Debian tree with mmdebstrap from the apt sources of this machine, as a tar in a file that
// has no name, so that nothing is left whatever happens. What mmdebstrap says is shown on a
// terminal, and kept for the error otherwise.
Result<Fd> make_debian_tree(const DebianTree& wanted, const std::string& folder,
                            const Console& console);

}  // namespace berth::cli
