#include "cli/print/plain_words.hpp"

#include <algorithm>
#include <iterator>

namespace berth::cli {
namespace {

struct PlainWord {
  std::string_view from;
  std::string_view to;
};

constexpr PlainWord actions[] = {{"heartbeat.invoked", "run started"},
                                 {"environment.probed_unsaved", "environment draft tested"},
                                 {"environment.probed", "environment tested"}};
// The first that fits the start; what it stands for takes its place.
constexpr PlainWord starts[] = {{"heartbeat.", "run "},
                                {"environment.lease_", "lease "},
                                {"environment.sandbox_", "sandbox "},
                                {"environment.custom_image_", "custom image "}};
constexpr PlainWord kinds[] = {{"heartbeat_run", "run"},
                               {"environment_lease", "lease"},
                               {"environment_custom_image_template", "template"},
                               {"environment_custom_image_setup_session", "setup session"}};
constexpr PlainWord sentences[] = {
    {"by a board operator", "by an operator"},
    {"PATCH its status to archived", "berth env update ENVIRONMENT --status archived"},
    {"PATCH its status to active", "berth secret enable SECRET"},
    {"read its delete-blast-radius for what stands against it",
     "'berth env blast-radius ENVIRONMENT' shows what stands against it"},
    {"heartbeat run", "run"},
    {"Heartbeat run", "Run"}};

std::string in_words(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '.' || c == '_'; }, ' ');
  return text;
}

template <std::size_t N>
const PlainWord* word_for(const PlainWord (&words)[N], std::string_view text) {
  const auto* const found = std::ranges::find(words, text, &PlainWord::from);
  return found == std::end(words) ? nullptr : found;
}

}  // namespace

std::string plain_action(std::string_view action) {
  if (const PlainWord* word = word_for(actions, action)) return std::string{word->to};
  for (const PlainWord& word : starts) {
    if (!action.starts_with(word.from)) continue;
    return std::string{word.to} + in_words(std::string{action.substr(word.from.size())});
  }
  return in_words(std::string{action});
}

std::string plain_kind(std::string_view kind) {
  if (const PlainWord* word = word_for(kinds, kind)) return std::string{word->to};
  return in_words(std::string{kind});
}

std::string plain_actor(std::string_view actor) {
  return actor == "local-board" ? "local operator" : std::string{actor};
}

std::string plain_value(std::string_view key, std::string value) {
  if (key == "managedMode") return value == "paperclip_managed" ? "kept by this server" : value;
  return key.ends_with("By") || key.ends_with("UserId") ? plain_actor(value) : value;
}

std::string plain_sentence(std::string text) {
  for (const PlainWord& word : sentences) {
    for (std::size_t at = text.find(word.from); at != std::string::npos;
         at = text.find(word.from, at + word.to.size())) {
      text.replace(at, word.from.size(), word.to);
    }
  }
  return text;
}

}  // namespace berth::cli
