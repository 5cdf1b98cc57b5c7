#pragma once

#include "cli/tree.hpp"

#include <string>
#include <vector>

// The variables that a command line gives to what runs.
namespace berth::cli {

struct VariableFlags {
  std::vector<std::string> given;  // NAME=VALUE, NAME=secret:SECRET, NAME
  std::vector<std::string> files;  // of NAME=VALUE lines
  // As they were written before: each spelling has a list of its own, or one would replace another.
  std::vector<std::string> old_given;
  std::vector<std::string> secrets;  // NAME=SECRET
};

struct Variable {
  enum class Kind { text, secret };
  std::string name;
  std::string value;  // of a secret: what names it
  Kind kind = Kind::text;
};

void add_variable_flags(CLI::App& app, VariableFlags& flags);
// A name alone takes the value that it has in `own`. What was said last counts.
Result<std::vector<Variable>> read_variables(const VariableFlags& flags, const Variables& own);
// As the API takes them: a secret is stored as a reference to it.
Result<bj::object> variables_in_json(Context& context, const std::vector<Variable>& variables);

}  // namespace berth::cli
