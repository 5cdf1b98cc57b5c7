#include "cli/print/words.hpp"

#include "cli/config.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace berth::cli {
namespace {

constexpr std::string_view dashes = "--";

// What users of other programs type first.
struct Shorthand {
  std::string_view word;
  std::array<std::string_view, 2> means;
};
constexpr Shorthand shorthands[] = {
    {"ps", {"run", "list"}},          {"logs", {"run", "logs"}},
    {"runs", {"run", "list"}},        {"images", {"image", "list"}},
    {"envs", {"env", "list"}},        {"environments", {"env", "list"}},
    {"agents", {"agent", "list"}},    {"leases", {"lease", "list"}},
    {"sandboxes", {"sandbox", "ls"}}, {"secrets", {"secret", "list"}},
    {"tokens", {"token", "list"}},    {"templates", {"template", "list"}},
    {"plugins", {"plugin", "list"}},  {"companies", {"company", "list"}},
};

// What other programs call something that has another name here.
struct Hint {
  std::string_view word;
  std::string_view says;
};
constexpr Hint word_hints[] = {
    {"stop", "end a run with 'berth run cancel RUN'"},
    {"kill", "end a run with 'berth run cancel RUN'"},
    {"shell", "open a shell with 'berth run -it -e ENVIRONMENT' or 'berth exec -it RUN'"},
    {"ssh", "open a shell with 'berth run -it -e ENVIRONMENT' or 'berth exec -it RUN'"},
    {"pull", "import an image with 'berth image import SOURCE NAME'"},
    {"build", "make an image with 'berth image build-debian NAME'"},
    {"rm", "remove a sandbox with 'berth sandbox rm', a run with 'berth run delete'"},
    {"attach", "follow a run with 'berth run logs -f RUN'"},
    {"port", "reach a port with 'berth sandbox port RUN PORT'"},
    {"stats", "show usage with 'berth sandbox stats'"},
    {"diff", "show changes with 'berth sandbox diff RUN'"},
};
constexpr Hint flag_hints[] = {
    {"-v", "bind folders of this machine with 'berth sandbox run --bind HERE:THERE'"},
    {"--volume", "bind folders of this machine with 'berth sandbox run --bind HERE:THERE'"},
    {"--bind", "bind folders of this machine with 'berth sandbox run --bind HERE:THERE'"},
    {"--image",
     "name an environment of that image: 'berth env create NAME --driver sandbox --set "
     "image=IMAGE'"},
    {"--name", "use the id that 'berth run -d' prints, or 'last' for the newest run"},
};

using Apps = std::vector<const CLI::App*>;

Apps children_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* child_of(const CLI::App& app, const std::string& word) {
  for (const CLI::App* child : children_of(app)) {
    if (child->check_name(word)) return child;
  }
  return nullptr;
}

const CLI::Option* option_of(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() > 0;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word.starts_with('-') && word != dashes;
}

// How many words a flag takes: itself, and its value if that is the next word.
std::size_t words_of_flag(const std::string& word, const CLI::App& app) {
  if (word.starts_with(dashes)) {
    return !word.contains('=') && takes_value(option_of(&app, word)) ? 2 : 1;
  }
  for (std::size_t at = 1; at < word.size(); ++at) {
    const CLI::Option* option = option_of(&app, std::string{"-"} + word[at]);
    if (option == nullptr) return 1;
    if (takes_value(option)) return at + 1 == word.size() ? 2 : 1;
  }
  return 1;
}

std::size_t after_flags(const std::vector<std::string>& words, std::size_t at,
                        const CLI::App& app) {
  while (at < words.size() && is_flag(words[at])) at += words_of_flag(words[at], app);
  return std::min(at, words.size());
}

bool asks_for_help(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word == "--help" || word == "-h" || word == "--version";
  });
}

// How many of its own words precede the command that it executes; nothing: it executes none.
std::optional<std::size_t> words_before_command(const CLI::App& app) {
  if (app.get_name() == "run" || app.get_name() == "__complete") return 0;
  if (app.get_name() == "exec") return 1;
  return std::nullopt;
}

void cut_command(Words& words, std::size_t at, const CLI::App& app) {
  std::vector<std::string>& ours = words.ours;
  std::size_t before = words_before_command(app).value_or(0);
  while (at < ours.size()) {
    const std::string& word = ours[at];
    if (is_flag(word)) {
      at += words_of_flag(word, app);
      continue;
    }
    if (word != dashes && before > 0) {
      --before;
      ++at;
      continue;
    }
    const auto from = ours.begin() + static_cast<std::ptrdiff_t>(at);
    words.command.emplace(word == dashes ? from + 1 : from, ours.end());
    ours.erase(from, ours.end());
    return;
  }
}

// In a short word, two changes make a completely different word.
std::string nearest(const std::string& word, std::vector<std::string> known) {
  if (word.size() <= 3) {
    std::erase_if(known, [&](const std::string& each) { return !each.starts_with(word.front()); });
  }
  return closest(word, known);
}

std::string proposal_for(const CLI::App& app, const std::string& word) {
  const bool is_root = app.get_parent() == nullptr;
  std::vector<std::string> known;
  for (const CLI::App* child : children_of(app)) {
    if (child->get_group().empty()) continue;
    known.push_back(child->get_name());
    for (const std::string& alias : child->get_aliases()) known.push_back(alias);
  }
  if (is_root) {
    const auto* const hint = std::ranges::find(word_hints, word, &Hint::word);
    if (hint != std::end(word_hints)) return std::string{hint->says};
    known.emplace_back("help");
    for (const Shorthand& each : shorthands) known.emplace_back(each.word);
  }
  if (const std::string near = nearest(word, known); !near.empty()) {
    return "did you mean '" + path_of(app) + " " + near + "'?";
  }
  std::string elsewhere;
  for (const CLI::App* child : is_root ? children_of(app) : Apps{}) {
    const CLI::App* found = child_of(*child, word);
    if (found == nullptr) continue;
    elsewhere += (elsewhere.empty() ? "did you mean '" : "', '") + path_of(*found);
  }
  return elsewhere.empty() ? "see '" + path_of(app) + " --help'" : elsewhere + "'?";
}

std::unexpected<Error> unknown_command(const CLI::App& app, const std::string& word) {
  return fail(Errc::bad_request, "'" + word + "' is not a command of '" + path_of(app) + "'",
              proposal_for(app, word));
}

std::unexpected<Error> incomplete(const CLI::App& app) {
  Error error{.code = Errc::bad_request,
              .message = "'" + path_of(app) + "' needs a command",
              .remedy = "see '" + path_of(app) + " --help'"};
  for (const CLI::App* child : children_of(app)) {
    error.facts["commands"].push_back(child->get_name());
  }
  return std::unexpected(std::move(error));
}

// `help env create` becomes `env create --help`; `ps` becomes `run list`.
void resolve_shorthand(std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size()) return;
  const auto here = words.begin() + static_cast<std::ptrdiff_t>(at);
  if (*here == "help") {
    words.erase(here);
    words.emplace_back("--help");
    return;
  }
  const auto* const found = std::ranges::find(shorthands, *here, &Shorthand::word);
  if (found == std::end(shorthands)) return;
  *here = found->means[0];
  words.emplace(here + 1, found->means[1]);
}

}  // namespace

std::string path_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return path_of(*app.get_parent()) + " " + app.get_name();
}

Result<Words> read_words(std::vector<std::string> arguments, const CLI::App& root) {
  Words words{.ours = std::move(arguments)};
  std::vector<std::string>& ours = words.ours;
  if (ours.empty()) ours.emplace_back("--help");
  if (ours.front() == "-v") ours.front() = "--version";
  resolve_shorthand(ours, after_flags(ours, 0, root));
  const CLI::App* app = &root;
  std::size_t at = 0;
  while (true) {
    // A flag of `run` itself precedes the command; a global flag may appear anywhere.
    const CLI::App& flags_of = words_before_command(*app) ? root : *app;
    std::size_t next = at;
    while (next < ours.size() && is_flag(ours[next])) {
      const bool is_own = &flags_of != app && option_of(&root, ours[next]) == nullptr;
      if (is_own) break;
      next += words_of_flag(ours[next], *app);
    }
    next = std::min(next, ours.size());
    const bool is_word = next < ours.size() && !is_flag(ours[next]) && ours[next] != dashes;
    const CLI::App* child = is_word ? child_of(*app, ours[next]) : nullptr;
    if (child == nullptr) {
      if (app->get_require_subcommand_min() > 0) {
        if (is_word) return unknown_command(*app, ours[next]);
        if (!asks_for_help(ours)) return incomplete(*app);
      }
      break;
    }
    app = child;
    at = next + 1;
  }
  if (words_before_command(*app)) cut_command(words, at, *app);
  return words;
}

Error unexpected_word(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  Error error{.code = Errc::bad_request, .remedy = "see '" + path_of(app) + " --help'"};
  if (!is_flag(word)) {
    error.message = "'" + word + "' is one word too many for '" + path_of(app) + "'";
    return error;
  }
  error.message = "'" + name + "' is not a flag of '" + path_of(app) + "'";
  const auto* const hint = std::ranges::find(flag_hints, name, &Hint::word);
  if (hint != std::end(flag_hints) && app.get_name() == "run") {
    error.remedy = std::string{hint->says};
    return error;
  }
  std::vector<std::string> known;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
    }
  }
  if (const std::string near = closest(name, known); !near.empty() && name.starts_with(dashes)) {
    error.remedy = "did you mean '" + near + "'?";
  }
  return error;
}

}  // namespace berth::cli
