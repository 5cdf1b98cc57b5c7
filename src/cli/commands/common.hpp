#pragma once

#include "cli/tree.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// The commands that every kind of object has. `example` names an object of the kind.
void add_list(CommandTree& tree, CLI::App& group, const Kind& kind);
void add_get(CommandTree& tree, CLI::App& group, const Kind& kind, const std::string& example);
void add_delete(CommandTree& tree, CLI::App& group, const Kind& kind, const std::string& example);

// -e/--environment names a place, in every command that takes one.
CLI::Option* add_environment_flag(CLI::App& app, std::string& target, const std::string& says);
// -w/--workdir; -C and --cwd are its old names.
void add_workdir_flag(CLI::App& app, std::string& target, const std::string& says);
// A spelling that is still accepted and no longer shown.
template <class T>
void add_old_name(CLI::App& app, const std::string& name, T& target) {
  CLI::Option* option = app.add_option(name, target)->group("");
  if constexpr (requires { target.push_back(std::string{}); } && !std::same_as<T, std::string>) {
    option->allow_extra_args(false);
  }
}

// company_usage.cpp: a company's usage and quota.
void add_company_usage_commands(CommandTree& tree, CLI::App& group);

// JSON given as `{"a":1}` or as @file; it must be an object.
Result<bj::object> read_object(const std::string& text, const std::string& flag);
// Merges `key=value` pairs into an object. A value that is JSON is used as such, else as text;
// "a.b=1" sets a field inside an object.
Result<> lay_over(bj::object& object, const std::vector<std::string>& pairs,
                  const std::string& flag);
// Sets the field when the flag was given; an empty text clears it where null is allowed.
void set_text(bj::object& body, const char* key, const std::string& text);
void set_nullable(bj::object& body, const char* key, const std::optional<std::string>& text);

}  // namespace berth::cli
