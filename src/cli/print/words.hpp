#pragma once

#include "base/result.hpp"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// A command line, prepared for CLI11.
struct Words {
  std::vector<std::string> ours;
  // The command that `run`, `exec` and `sandbox run` execute. CLI11 does not see it, because it
  // would look for our flags in it. Absent: none was typed.
  std::optional<std::vector<std::string>> command = {};
};

// Resolves shorthands (`ps`, `images`, `help env`), separates the command to execute, and reports
// an unknown command together with the nearest one.
Result<Words> read_words(std::vector<std::string> arguments, const CLI::App& root);

// "berth env create"
std::string path_of(const CLI::App& app);
// An error for a word of `app` that CLI11 could not place; it proposes the nearest flag.
Error unexpected_word(const CLI::App& app, const std::string& word);

}  // namespace berth::cli
