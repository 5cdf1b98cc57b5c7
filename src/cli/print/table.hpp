#pragma once

#include "base/time.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

enum class Paint { none, dim, bold, green, yellow, red, blue };

struct Cell {
  std::string text;
  Paint paint = Paint::none;
};

// How many terminal columns the text takes: combining accents none, wide characters two.
std::size_t display_width(std::string_view text);
// Without terminal control characters: names come from other users.
std::string printable(std::string_view text);
// At most `width` columns; a cut is marked by an ellipsis.
std::string clipped(std::string_view text, std::size_t width);
std::string painted(std::string_view text, Paint paint);

struct TableStyle {
  std::size_t columns = 80;  // of the terminal; 0: no limit
  bool colour = false;
  std::size_t whole = 0;  // leading columns that are never cut: a partial id is useless
};

// Aligned columns under their titles. The widest column shrinks when the terminal is too narrow.
std::string render_table(const std::vector<std::string>& titles,
                         const std::vector<std::vector<Cell>>& rows, const TableStyle& style);

// "3 min ago", "in 2 days", "just now".
std::string relative_time(Time at, Time now);

}  // namespace berth::cli
