#pragma once

#include "cli/tree.hpp"

#include <string>
#include <vector>

// The variables that a command line passes to the command.
namespace berth::cli {

struct VariableFlags {
  std::vector<std::string> given;  // NAME=VALUE, NAME=secret:SECRET, NAME
  std::vector<std::string> files;  // of NAME=VALUE lines
  // Older spellings: each has its own list, or one would replace another.
  std::vector<std::string> old_given;
  std::vector<std::string> secrets;  // NAME=SECRET
};

struct Variable {
  enum class Kind { text, secret };
  std::string name;
  std::string value;  // for a secret: its name
  Kind kind = Kind::text;
};

void add_variable_flags(CLI::App& app, VariableFlags& flags);
// A name alone gets its value from `own`. The last definition wins.
Result<std::vector<Variable>> read_variables(const VariableFlags& flags, const Variables& own);
// In the API's format: a secret is stored as a reference.
Result<bj::object> variables_in_json(Context& context, const std::vector<Variable>& variables);

}  // namespace berth::cli
