#pragma once

#include "base/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace berth::cli {

// How a value was written. Flags and variables have no types; a file does.
enum class Written { untyped, as_text, as_number, as_list };

// A value as text, and its position for messages.
struct GivenValue {
  std::string text;
  std::string source;
  Written written = Written::untyped;
};

// Reads a TOML settings file. Every key must be known and every value a string, a whole number, or
// a list of strings; the error names the file, the line and the column.
Result<std::map<std::string, GivenValue>> read_config_file(const std::string& path,
                                                           const std::vector<std::string>& known);

}  // namespace berth::cli
