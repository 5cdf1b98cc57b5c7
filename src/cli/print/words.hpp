#pragma once

#include "base/result.hpp"

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// A command line, made ready for CLI11.
struct Words {
  std::vector<std::string> ours;
  // What `run`, `exec` and `sandbox run` execute. CLI11 does not see it: it would look for our
  // flags in it. Absent: none was typed.
  std::optional<std::vector<std::string>> command = {};
};

// Resolves shorthands (`ps`, `images`, `help env`), separates the command to execute, and reports a
// word that is not a command together with the nearest one.
Result<Words> read_words(std::vector<std::string> arguments, const CLI::App& root);

// "berth env create"
std::string path_of(const CLI::App& app);
// What CLI11 could not place in the words of `app`, as an error that proposes the nearest flag.
Error unexpected_word(const CLI::App& app, const std::string& word);

}  // namespace berth::cli
