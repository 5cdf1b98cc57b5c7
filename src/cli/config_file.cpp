#include "cli/config_file.hpp"

#include "base/files.hpp"
#include "cli/config.hpp"

#include <toml++/toml.h>

#include <algorithm>

namespace berth::cli {
namespace {

constexpr std::size_t config_file_bytes_max = 1 << 20;

std::string place(const std::string& path, const toml::source_region& where) {
  return path + ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
}

// Lists become the text of a flag, which cannot express an item with a comma.
Result<std::string> text_of_list(const toml::array& list, const std::string& at) {
  std::string text;
  for (const toml::node& item : list) {
    const auto word = item.value_exact<std::string>();
    if (!word || word->find(',') != std::string::npos) {
      return fail(Errc::config_invalid, at + ": holds something else than plain strings",
                  R"(write it as ["one", "two"])");
    }
    text += (text.empty() ? "" : ",") + *word;
  }
  return text;
}

Result<GivenValue> given_value(const toml::node& node, const std::string& where,
                               const std::string& name) {
  if (const auto text = node.value_exact<std::string>()) {
    return GivenValue{*text, where, Written::as_text};
  }
  if (const auto number = node.value_exact<std::int64_t>()) {
    return GivenValue{std::to_string(*number), where, Written::as_number};
  }
  if (const toml::array* list = node.as_array()) {
    BERTH_TRY(std::string text, text_of_list(*list, where + ": " + name));
    return GivenValue{std::move(text), where, Written::as_list};
  }
  return fail(Errc::config_invalid,
              where + ": " + name + ": is neither text, a whole number nor a list of text",
              "put text in quotes; settings have no sections");
}

std::unexpected<Error> unknown_setting(const std::string& where, const std::string& name,
                                       const std::vector<std::string>& known) {
  const std::string near = closest(name, known);
  std::string remedy = "'berth config show' lists all";
  if (!near.empty()) remedy.insert(0, "did you mean '" + near + "'? ");
  return fail(Errc::config_invalid, where + ": " + name + ": is not a known setting",
              std::move(remedy));
}

// The library reports what it cannot read by throwing; here that becomes a value.
Result<toml::table> parse_toml(const std::string& text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    return fail(Errc::config_invalid,
                place(path, error.source()) + ": " + std::string{error.description()},
                "write one 'name = value' a line, text in quotes");
  }
}

}  // namespace

Result<std::map<std::string, GivenValue>> read_config_file(const std::string& path,
                                                           const std::vector<std::string>& known) {
  Result<std::string> text = read_file(path, config_file_bytes_max);
  if (!text) {
    return fail(Errc::config_invalid, "configuration file: " + text.error().message,
                "make it readable, or name another with --config-file or BERTH_CONFIG");
  }
  BERTH_TRY(const toml::table table, parse_toml(*text, path));
  std::map<std::string, GivenValue> values;
  for (const auto& [key, node] : table) {
    const std::string name{key.str()};
    const std::string where = place(path, key.source());
    if (std::ranges::find(known, name) == known.end()) return unknown_setting(where, name, known);
    BERTH_TRY(values[name], given_value(node, where, name));
  }
  return values;
}

}  // namespace berth::cli
