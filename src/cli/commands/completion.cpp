#include "cli/completion.hpp"

#include "cli/tree.hpp"

namespace berth::cli {

void add_completion_commands(CommandTree& tree) {
  CLI::App& group = tree.group("completion", "completion for shells");
  const CLI::App& root = tree.root();
  tree.leaf(
      group, "bash", "print the script for bash", "source <(berth completion bash)",
      [&root](Session& session) -> Result<> {
        session.printer().text(bash_completion(root));
        return {};
      },
      Needs::nothing);
  tree.leaf(
      group, "zsh", "print the script for zsh", "source <(berth completion zsh)",
      [&root](Session& session) -> Result<> {
        session.printer().text(zsh_completion(root));
        return {};
      },
      Needs::nothing);
}

}  // namespace berth::cli
