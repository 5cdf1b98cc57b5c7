#include "cli/print/table.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>

namespace berth::cli {
namespace {

constexpr std::size_t gap = 2;
// A column shrinks to the first width; only if that is not enough, to the second.
constexpr std::array narrowest = {std::size_t{8}, std::size_t{3}};

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Good enough for ordinary names; only the terminal's own table is exact.
constexpr std::array zero_width = {
    Range{0x0300, 0x036f}, Range{0x0483, 0x0489}, Range{0x0591, 0x05bd},  Range{0x0610, 0x061a},
    Range{0x064b, 0x065f}, Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff},  Range{0x200b, 0x200f},
    Range{0x202a, 0x202e}, Range{0x2060, 0x2064}, Range{0x20d0, 0x20ff},  Range{0xfe00, 0xfe0f},
    Range{0xfe20, 0xfe2f}, Range{0xfeff, 0xfeff}, Range{0xe0100, 0xe01ef}};
constexpr std::array two_wide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0x33ff},
    Range{0x3400, 0x4dbf},   Range{0x4e00, 0x9fff},   Range{0xa000, 0xa4cf},
    Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},
    Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f},
    Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};
constexpr std::array steering = {Range{0x0000, 0x001f}, Range{0x007f, 0x009f},
                                 Range{0xfffd, 0xfffd}};

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, std::uint32_t point) {
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return point >= range.first && point <= range.last; });
}

struct Decoded {
  std::uint32_t point;
  std::size_t bytes;
};

// The first character of the text; an invalid UTF-8 byte is U+FFFD and one byte long.
Decoded decode_first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead > 0xf4 || text.size() < length) return {0xfffd, 1};
  std::uint32_t point = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return {0xfffd, 1};
    point = (point << 6) | (next & 0x3fU);
  }
  return {point, length};
}

std::size_t width_of(std::uint32_t point) {
  if (in(zero_width, point)) return 0;
  return in(two_wide, point) ? 2 : 1;
}

std::vector<std::size_t> fit(std::vector<std::size_t> widths, const TableStyle& style) {
  if (style.columns == 0 || style.whole >= widths.size()) return widths;
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
           gap * (widths.size() - 1);
  };
  for (const std::size_t least : narrowest) {
    while (total() > style.columns) {
      const auto widest = std::ranges::max_element(std::span{widths}.subspan(style.whole));
      if (*widest <= least) break;
      *widest -= std::min(*widest - least, total() - style.columns);
    }
  }
  return widths;
}

void append_line(std::string& out, const std::vector<Cell>& cells,
                 const std::vector<std::size_t>& widths, const TableStyle& style) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const Cell& cell = cells[i];
    const std::string text = clipped(cell.text, widths[i]);
    line += style.colour ? painted(text, cell.paint) : text;
    if (i + 1 < widths.size()) line.append(widths[i] - display_width(text) + gap, ' ');
  }
  const std::size_t last = line.find_last_not_of(' ');
  out += line.substr(0, last == std::string::npos ? 0 : last + 1) + "\n";
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [point, bytes] = decode_first(text);
    width += width_of(point);
    text.remove_prefix(bytes);
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [point, bytes] = decode_first(text);
    if (point == '\n' || point == '\t') {
      out += ' ';
    } else if (in(steering, point) || is_unseen(point)) {
      out += '?';
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string clipped(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string{text};
  if (width == 0) return {};
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const auto [point, bytes] = decode_first(text);
    if (used + width_of(point) > width - 1) break;
    used += width_of(point);
    out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out + "…";
}

std::string painted(std::string_view text, Paint paint) {
  constexpr std::array codes = {"",         "\x1b[2m",  "\x1b[1m", "\x1b[32m",
                                "\x1b[33m", "\x1b[31m", "\x1b[34m"};
  if (paint == Paint::none) return std::string{text};
  return codes[static_cast<std::size_t>(paint)] + std::string{text} + "\x1b[0m";
}

std::string render_table(const std::vector<std::string>& titles,
                         const std::vector<std::vector<Cell>>& rows, const TableStyle& style) {
  std::vector<std::size_t> widths;
  std::vector<Cell> head;
  for (const std::string& title : titles) {
    widths.push_back(display_width(title));
    head.push_back({title, Paint::bold});
  }
  std::vector<std::vector<Cell>> clean = rows;
  for (std::vector<Cell>& row : clean) {
    row.resize(titles.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i].text = printable(row[i].text);
      widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  widths = fit(std::move(widths), style);
  std::string out;
  append_line(out, head, widths, style);
  for (const std::vector<Cell>& row : clean) append_line(out, row, widths, style);
  return out;
}

std::string relative_time(Time at, Time now) {
  struct Unit {
    std::int64_t seconds;
    const char* one;
    const char* many;
  };
  static constexpr std::array units = {
      Unit{31'557'600, "year", "years"},
      Unit{2'629'800, "month", "months"},
      Unit{86'400, "day", "days"},
      Unit{3'600, "hour", "hours"},
      Unit{60, "min", "min"},
      Unit{1, "s", "s"},
  };
  const std::int64_t seconds = (now - at) / 1000;
  const std::int64_t size = seconds < 0 ? -seconds : seconds;
  if (size < 2) return "just now";
  const auto* unit = std::ranges::find_if(units, [&](const Unit& u) { return size >= u.seconds; });
  const std::int64_t count = size / unit->seconds;
  const std::string amount = std::to_string(count) + " " + (count == 1 ? unit->one : unit->many);
  return seconds < 0 ? "in " + amount : amount + " ago";
}

}  // namespace berth::cli
