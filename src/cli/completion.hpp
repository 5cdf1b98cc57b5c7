#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace berth::cli {

// Scripts that complete the commands and flags of the tree as it is, so that they cannot go stale.
std::string bash_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);
// Asks `berth __complete` for everything.
std::string fish_completion();

// What may come next on a command line whose last word is still being typed.
struct Expected {
  std::vector<std::string> words;  // commands, flags or a closed set of values
  std::string kind;                // of the object that is to be named: "environment"; or empty
};
Expected expected_at(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace berth::cli
