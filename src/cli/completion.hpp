#pragma once

#include <string>

namespace CLI {
class App;
}

namespace berth::cli {

// Scripts that complete the commands and flags of the tree as it is, so that they cannot go stale.
std::string bash_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);

}  // namespace berth::cli
