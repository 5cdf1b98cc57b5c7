#include "cli/completion.hpp"

#include "base/strings.hpp"
#include "cli/tree.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

namespace berth::cli {
namespace {

// What may stand at one place of the command line.
struct OfferedWord {
  std::string text;
  std::string says;
};
struct WordPlace {
  std::string path;  // " env create"
  std::vector<OfferedWord> commands;
  std::vector<OfferedWord> flags;
  std::vector<std::string> value_flags;                     // flags that take the next word
  std::map<std::string, std::vector<std::string>> choices;  // flag to its closed set of values
  std::map<std::string, std::string> objects;               // flag to the kind of object it takes
  std::vector<std::string> positionals;                     // "environment", "name", in order
};

// The object kinds whose names the server can list, as positionals and as flag types.
bool is_object_kind(const std::string& word) {
  static const std::vector<std::string> kinds = {
      "environment", "agent",    "run",     "lease",  "sandbox", "place",  "secret",
      "token",       "template", "company", "plugin", "image",   "profile"};
  return std::ranges::find(kinds, word) != kinds.end();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = text.find(at); end != std::string::npos; end = text.find(at, start)) {
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

// A closed set is written "local|ssh" in lower case; "JSON|@FILE" is only a description.
bool is_closed_set(const std::string& type) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '|'; };
  return type.find('|') != std::string::npos && std::ranges::all_of(type, plain);
}

void add_flags(const CLI::App& app, WordPlace& place) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) place.positionals.push_back(option->get_single_name());
    if (option->get_group().empty()) continue;  // an old name, which is not offered
    std::vector<std::string> names;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : names) {
      place.flags.push_back({name, option->get_description()});
      if (option->get_items_expected_max() == 0) continue;
      place.value_flags.push_back(name);
      const std::string type = option->get_type_name();
      if (is_closed_set(type)) place.choices[name] = split(type, '|');
      if (is_object_kind(lower(type))) place.objects[name] = lower(type);
    }
  }
}

// Every command has a --help of its own, as the root has.
void drop_repeated(std::vector<OfferedWord>& flags) {
  std::ranges::sort(flags, {}, &OfferedWord::text);
  const auto rest = std::ranges::unique(flags, {}, &OfferedWord::text);
  flags.erase(rest.begin(), rest.end());
}

void collect(const CLI::App& app, const CLI::App& root, const std::string& path,
             std::vector<WordPlace>& places) {
  WordPlace place;
  place.path = path;
  add_flags(app, place);
  if (&app != &root) add_flags(root, place);
  drop_repeated(place.flags);
  std::vector<const CLI::App*> children =
      app.get_subcommands([](const CLI::App* child) { return !child->get_group().empty(); });
  for (const CLI::App* child : children) {
    place.commands.push_back({child->get_name(), child->get_description()});
  }
  places.push_back(std::move(place));
  for (const CLI::App* child : children) {
    collect(*child, root, path + " " + child->get_name(), places);
  }
}

std::vector<WordPlace> places_of(const CLI::App& root) {
  std::vector<WordPlace> places;
  collect(root, root, "", places);
  return places;
}

template <class List, class Text>
std::string texts_of(const List& list, Text text, const std::string& joint) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : joint) + text(item);
  return out;
}

std::string same(const std::string& text) {
  return text;
}

// 'quoted' for a shell, even if the text contains quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return out + "'";
}

// Both shells find the place alike: words that are commands of the place so far lead on, flags and
// their values are stepped over.
std::string path_cases(const std::vector<WordPlace>& places) {
  std::string out;
  for (const WordPlace& place : places) {
    for (const OfferedWord& command : place.commands) {
      out += "      " + quoted(place.path + " " + command.text) + ") place=\"$place $word\" ;;\n";
    }
  }
  return out;
}

std::string value_flag_pattern(const std::vector<WordPlace>& places) {
  std::vector<std::string> flags;
  for (const WordPlace& place : places) {
    flags.insert(flags.end(), place.value_flags.begin(), place.value_flags.end());
  }
  std::ranges::sort(flags);
  flags.erase(std::ranges::unique(flags).begin(), flags.end());
  return texts_of(flags, same, "|");
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  const std::vector<WordPlace> places = places_of(root);
  const auto text = [](const OfferedWord& word) { return word.text; };
  std::string out = R"(# Completion of berth for bash. Use it with: source <(berth completion bash)
_berth() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
  local place="" word skip=0 at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="${COMP_WORDS[at]}"
    if ((skip)); then skip=0; continue; fi
    case "$word" in
)";
  out += "      " + value_flag_pattern(places) + ") skip=1; continue ;;\n";
  out += "    esac\n    case \"$place $word\" in\n" + path_cases(places);
  out += "    esac\n  done\n  case \"$place:$prev\" in\n";
  for (const WordPlace& place : places) {
    for (const auto& [flag, values] : place.choices) {
      out += "    " + quoted(place.path + ":" + flag) + ") COMPREPLY=($(compgen -W " +
             quoted(texts_of(values, same, " ")) + " -- \"$cur\")); return ;;\n";
    }
  }
  out +=
      "  esac\n  local IFS=$'\\n'\n  COMPREPLY=($(compgen -W \"$(berth __complete -- "
      "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\" -- \"$cur\"))\n"
      "  if ((${#COMPREPLY[@]})); then return; fi\n  IFS=$' \\t\\n'\n"
      "  if ((skip)); then COMPREPLY=($(compgen -f -- \"$cur\")); return; fi\n"
      "  case \"$place\" in\n";
  for (const WordPlace& place : places) {
    out += "    " + quoted(place.path) +
           ")\n      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W " +
           quoted(texts_of(place.flags, text, " ")) + " -- \"$cur\"))\n";
    out += "      else COMPREPLY=($(compgen -W " + quoted(texts_of(place.commands, text, " ")) +
           " -- \"$cur\")); fi ;;\n";
  }
  return out + "  esac\n}\ncomplete -o default -F _berth berth\n";
}

std::string zsh_completion(const CLI::App& root) {
  const std::vector<WordPlace> places = places_of(root);
  const auto described = [](const OfferedWord& word) {
    std::string says = word.says;
    std::string name = word.text;
    std::erase(says, ':');
    return quoted(name + ":" + says);
  };
  std::string out = R"(#compdef berth
# Completion of berth for zsh. Use it with: source <(berth completion zsh)
_berth() {
  local cur="${words[CURRENT]}" prev="${words[CURRENT-1]}"
  local place="" word skip=0 at
  local -a found
  for ((at = 2; at < CURRENT; at++)); do
    word="${words[at]}"
    if ((skip)); then skip=0; continue; fi
    case "$word" in
)";
  out += "      " + value_flag_pattern(places) + ") skip=1; continue ;;\n";
  out += "    esac\n    case \"$place $word\" in\n" + path_cases(places);
  out += "    esac\n  done\n  case \"$place:$prev\" in\n";
  for (const WordPlace& place : places) {
    for (const auto& [flag, values] : place.choices) {
      out += "    " + quoted(place.path + ":" + flag) + ") compadd -- " +
             texts_of(values, quoted, " ") + "; return ;;\n";
    }
  }
  out +=
      "  esac\n  found=(\"${(@f)$(berth __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
      "  if [[ -n ${found[1]} ]]; then compadd -- $found; return; fi\n  found=()\n"
      "  if ((skip)); then _files; return; fi\n  case \"$place\" in\n";
  for (const WordPlace& place : places) {
    out += "    " + quoted(place.path) + ")\n      if [[ $cur == -* ]]; then found=(" +
           texts_of(place.flags, described, " ") + ")\n";
    out += "      else found=(" + texts_of(place.commands, described, " ") + "); fi ;;\n";
  }
  // If no command fits, a file may.
  return out +
         "  esac\n  if ((${#found})); then _describe 'berth' found; else _files; fi\n}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _berth \"$@\"; "
         "else compdef _berth berth; fi\n";
}

std::string fish_completion() {
  return R"fish(# Completion of berth for fish. Use it with: berth completion fish | source
function __berth_complete
    set -l words (commandline -opc) (commandline -ct)
    berth __complete --all -- $words[2..-1] 2>/dev/null
end
complete -c berth -f -a '(__berth_complete)'
complete -c berth -n 'test -z "(__berth_complete)"' -F
)fish";
}

Expected expected_at(const CLI::App& root, const std::vector<std::string>& words) {
  const std::vector<WordPlace> places = places_of(root);
  const auto place_at = [&](const std::string& path) {
    return std::ranges::find(places, path, &WordPlace::path);
  };
  auto place = place_at("");
  std::size_t positional = 0;
  std::string flag;  // whose value comes next
  for (std::size_t at = 0; at + 1 < words.size(); ++at) {
    const std::string& word = words[at];
    if (!std::exchange(flag, "").empty()) continue;
    if (word.starts_with('-')) {
      const bool takes_value =
          std::ranges::find(place->value_flags, word) != place->value_flags.end();
      if (takes_value) flag = word;
      continue;
    }
    if (const auto next = place_at(place->path + " " + word); next != places.end()) {
      place = next;
      positional = 0;
    } else {
      ++positional;
    }
  }
  Expected expected;
  const std::string last = words.empty() ? "" : words.back();
  if (!flag.empty()) {
    if (const auto kind = place->objects.find(flag); kind != place->objects.end()) {
      expected.kind = kind->second;
    }
    if (const auto set = place->choices.find(flag); set != place->choices.end()) {
      expected.words = set->second;
    }
    return expected;
  }
  const auto text = [](const OfferedWord& word) { return word.text; };
  std::ranges::transform(last.starts_with('-') ? place->flags : place->commands,
                         std::back_inserter(expected.words), text);
  if (last.starts_with('-') || positional >= place->positionals.size()) return expected;
  const std::string& name = place->positionals[positional];
  if (is_object_kind(name)) expected.kind = name;
  return expected;
}

}  // namespace berth::cli
