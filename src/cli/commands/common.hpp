#pragma once

#include "cli/tree.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// The commands that every kind of object has alike. `example` names an object of the kind.
void add_list(CommandTree& tree, CLI::App& group, const Kind& kind);
void add_get(CommandTree& tree, CLI::App& group, const Kind& kind, const std::string& example);
void add_delete(CommandTree& tree, CLI::App& group, const Kind& kind, const std::string& example);

// company_usage.cpp: what a company uses, and its quota.
void add_company_usage_commands(CommandTree& tree, CLI::App& group);

// JSON that was typed as `{"a":1}` or named as @file; it must be an object.
Result<bj::object> read_object(const std::string& text, const std::string& flag);
// `key=value` pairs laid over an object. A value that is JSON is taken as such, else as text;
// "a.b=1" sets a field inside an object.
Result<> lay_over(bj::object& object, const std::vector<std::string>& pairs,
                  const std::string& flag);
// Sets the field when the flag was given; the empty text clears it where null is allowed.
void set_text(bj::object& body, const char* key, const std::string& text);
void set_nullable(bj::object& body, const char* key, const std::optional<std::string>& text);

}  // namespace berth::cli
