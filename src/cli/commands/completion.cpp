#include "cli/completion.hpp"

#include "cli/tree.hpp"

#include "cli/profiles.hpp"
#include "images/image_store.hpp"

#include <unistd.h>

namespace berth::cli {
namespace {

constexpr std::int64_t offered_max = 200;
constexpr std::size_t id_characters = 8;

struct CompleteOptions {
  std::vector<std::string> words;
  bool all = false;
};

void add_names_of(Context& context, const Kind& kind, std::vector<std::string>& out) {
  const Result<const Client*> client = context.client();
  if (!client) return;
  Result<std::string> path = std::string{"/api/companies"};
  if (&kind != &company_kind()) path = context.company_path(kind.path);
  const Result<bj::array> rows = path ? (*client)->list(*path, offered_max) : bj::array{};
  for (const bj::value& row : rows.value_or(bj::array{})) {
    const std::string name = text_of(row, "name");
    const std::string id = text_of(row, "id");
    if (name.empty() && id.size() < id_characters) continue;
    out.push_back(name.empty() ? id.substr(id.size() - id_characters) : name);
  }
}

void add_images(Context& context, std::vector<std::string>& out) {
  context.adopt_server_home();
  const std::string folder = context.config().settings.home + "/images";
  if (::access(folder.c_str(), R_OK) != 0) return;
  const auto store = images::ImageStore::open(folder);
  if (!store) return;
  const auto all = store->list();
  if (!all) return;
  for (const images::Image& image : *all)
    out.insert(out.end(), image.names.begin(), image.names.end());
}

void add_profiles(Context& context, std::vector<std::string>& out) {
  const auto profiles = Profiles::read(Profiles::file_of(context.console().variables));
  if (!profiles) return;
  for (const bj::value& row : profiles->rows()) out.push_back(text_of(row, "name"));
}

void add_plugins(Context& context, std::vector<std::string>& out) {
  const Result<bj::value> plugins = context.get("/api/plugins");
  if (!plugins || !plugins->is_array()) return;
  for (const bj::value& row : plugins->get_array()) {
    const std::string key = text_of(row, "pluginKey");
    out.push_back(key.empty() ? text_of(row, "name") : key);
  }
}

// If the server does not answer, nothing is completed: an error would appear in the middle of the
// line that the user types.
std::vector<std::string> names_of_kind(Context& context, const std::string& kind) {
  std::vector<std::string> names;
  if (kind == "image") add_images(context, names);
  if (kind == "profile") add_profiles(context, names);
  if (kind == "plugin") add_plugins(context, names);
  if (kind == "run" || kind == "place") names.emplace_back("last");
  static const Kind templates{.noun = "template", .path = "templates"};
  const std::pair<const char*, const Kind*> kinds[] = {{"environment", &environment_kind()},
                                                       {"agent", &agent_kind()},
                                                       {"run", &run_kind()},
                                                       {"lease", &lease_kind()},
                                                       {"sandbox", &lease_kind()},
                                                       {"place", &run_kind()},
                                                       {"place", &lease_kind()},
                                                       {"secret", &secret_kind()},
                                                       {"token", &token_kind()},
                                                       {"template", &templates},
                                                       {"company", &company_kind()}};
  for (const auto& [name, of_kind] : kinds) {
    if (kind == name) add_names_of(context, *of_kind, names);
  }
  return names;
}

Result<> complete(Context& context, const CLI::App& root, const CompleteOptions& options) {
  std::vector<std::string> words = context.flags().command.value_or(options.words);
  const Expected expected = expected_at(root, words);
  std::vector<std::string> offered = names_of_kind(context, expected.kind);
  if (options.all) {
    offered.insert(offered.end(), expected.words.begin(), expected.words.end());
  }
  const std::string start = words.empty() ? "" : words.back();
  for (const std::string& word : offered) {
    if (word.starts_with(start)) context.printer().text(printable(word) + "\n");
  }
  return {};
}

}  // namespace

void add_completion_commands(CommandTree& tree) {
  CLI::App& group = tree.group("completion", "completion for shells");
  const CLI::App& root = tree.root();
  tree.leaf(
      group, "bash", "print the script for bash", "source <(berth completion bash)",
      [&root](Context& context) -> Result<> {
        context.printer().text(bash_completion(root));
        return {};
      },
      Needs::nothing);
  tree.leaf(
      group, "zsh", "print the script for zsh", "source <(berth completion zsh)",
      [&root](Context& context) -> Result<> {
        context.printer().text(zsh_completion(root));
        return {};
      },
      Needs::nothing);
  tree.leaf(
      group, "fish", "print the script for fish", "berth completion fish | source",
      [](Context& context) -> Result<> {
        context.printer().text(fish_completion());
        return {};
      },
      Needs::nothing);
  const auto options = std::make_shared<CompleteOptions>();
  CLI::App& completes = tree.leaf(
      tree.root(), "__complete", "what the scripts ask for", "berth __complete -- env get Lo",
      [options, &root](Context& context) { return complete(context, root, *options); },
      Needs::nothing);
  completes.group("");
  completes.add_flag("--all", options->all, "commands and flags, too");
}

}  // namespace berth::cli
