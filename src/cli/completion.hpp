#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace berth::cli {

// Completion scripts for the commands and flags of the actual tree, so that they cannot become
// stale.
std::string bash_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);
// Asks `berth __complete` for everything.
std::string fish_completion();

// What may come next on a command line whose last word is incomplete.
struct Expected {
  std::vector<std::string> words;  // commands, flags or a closed set of values
  std::string kind;                // kind of the object to name: "environment"; or empty
};
Expected expected_at(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace berth::cli
