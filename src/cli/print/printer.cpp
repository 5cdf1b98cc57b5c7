#include "cli/print/printer.hpp"

#include "base/id.hpp"
#include "base/json/peek.hpp"
#include "cli/print/plain_words.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <set>

namespace berth::cli {
namespace {

const bj::value* find_below(const bj::value& row, std::string_view path) {
  const bj::value* at = &row;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (!at->is_object()) return nullptr;
    const auto found = at->get_object().find(key);
    if (found == at->get_object().end()) return nullptr;
    at = &found->value();
  }
  return at;
}

std::string plain(const bj::value& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return std::string{value.get_string()};
  return bj::serialize(value);
}

std::string words_or_dash(const bj::array& words) {
  std::string text;
  for (const bj::value& word : words) text += (text.empty() ? "" : ", ") + plain(word);
  return text.empty() ? "-" : text;
}

void write_pretty(std::string& out, const bj::value& value, const std::string& indent) {
  const std::string deeper = indent + "  ";
  const char* joint = "\n";
  if (value.is_object() && !value.get_object().empty()) {
    out += "{";
    for (const auto& [key, item] : value.get_object()) {
      out += std::exchange(joint, ",\n") + deeper + bj::serialize(bj::value(key)) + ": ";
      write_pretty(out, item, deeper);
    }
    out += "\n" + indent + "}";
  } else if (value.is_array() && !value.get_array().empty()) {
    out += "[";
    for (const bj::value& item : value.get_array()) {
      out += std::exchange(joint, ",\n") + deeper;
      write_pretty(out, item, deeper);
    }
    out += "\n" + indent + "]";
  } else {
    out += bj::serialize(value);
  }
}

// "adapterConfig" is shown as "adapter config".
std::string spaced(std::string_view camel) {
  std::string out;
  for (const char c : camel) {
    if (c >= 'A' && c <= 'Z') {
      out += ' ';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
  }
  return out;
}

Shown shown_for(std::string_view key) {
  if (key.ends_with("At")) return Shown::moment;
  return key == "status" || key == "outcome" ? Shown::state : Shown::plain;
}

// A value that would be one long line of JSON.
bool is_nested(const bj::value& value) {
  if (value.is_object()) return !value.get_object().empty();
  return value.is_array() && !value.get_array().empty() && value.get_array().front().is_object();
}

std::string indented(const std::string& lines) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    out += "\n    " + printable(std::string_view{lines}.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_known(const bj::array& rows, const std::string& key) {
  return std::ranges::any_of(rows, [&](const bj::value& row) {
    const bj::value* value = find_below(row, key);
    return value != nullptr && !value->is_null();
  });
}

// The name of an object for a program.
std::string handle_of(const bj::value& row) {
  if (!row.is_object()) return plain(row);
  const bj::array* names = array_in(row.get_object(), "names");
  if (names != nullptr && !names->empty()) return plain(names->front());
  // Several runs may share a name, so a script gets the ids.
  const bool is_run = row.get_object().contains("invocationSource");
  for (const char* key : {"name", "id", "digest", "key"}) {
    if (is_run && std::string_view{key} == "name") continue;
    const auto found = peek<std::string>(row, key);
    if (found && !found->empty()) return *found;
  }
  return "-";
}

// Shortens the ids in a column to their last characters, as the page does: as many as are needed to
// distinguish them.
void shorten_ids(std::vector<std::vector<Cell>>& rows, std::size_t column) {
  std::set<std::string> ids;
  for (const std::vector<Cell>& row : rows) {
    if (is_uuid(row[column].text)) ids.insert(row[column].text);
  }
  for (const std::size_t length : {8U, 12U, 17U}) {
    std::set<std::string> ends;
    for (const std::string& id : ids) ends.insert(id.substr(id.size() - length));
    if (ends.size() != ids.size()) continue;
    for (std::vector<Cell>& row : rows) {
      std::string& text = row[column].text;
      if (is_uuid(text)) text = text.substr(text.size() - length);
    }
    return;
  }
}

}  // namespace

Paint paint_of_state(std::string_view state) {
  struct Painted {
    std::string_view state;
    Paint paint;
  };
  static constexpr Painted known[] = {
      {"active", Paint::green},      {"current", Paint::green},   {"ok", Paint::green},
      {"ready", Paint::green},       {"success", Paint::green},   {"succeeded", Paint::green},
      {"promoted", Paint::green},    {"running", Paint::blue},    {"starting", Paint::blue},
      {"acquiring", Paint::blue},    {"releasing", Paint::blue},  {"creating", Paint::blue},
      {"capturing", Paint::blue},    {"error", Paint::red},       {"failed", Paint::red},
      {"failure", Paint::red},       {"terminated", Paint::red},  {"revoked", Paint::red},
      {"deleted", Paint::red},       {"fail", Paint::red},        {"not_allowed", Paint::red},
      {"timed_out", Paint::red},     {"interrupted", Paint::red}, {"not removed", Paint::red},
      {"cancelled", Paint::yellow},  {"archived", Paint::yellow}, {"disabled", Paint::yellow},
      {"frozen", Paint::yellow},     {"paused", Paint::yellow},   {"parked", Paint::yellow},
      {"destroying", Paint::yellow},
  };
  const auto* const found = std::ranges::find(known, state, &Painted::state);
  return found == std::end(known) ? Paint::none : found->paint;
}

std::string command_text(const bj::array& argv) {
  std::string out;
  for (const bj::value& word : argv) {
    const std::string text = word.is_string() ? std::string{word.get_string()} : plain(word);
    const bool is_plain =
        !text.empty() && text.find_first_of(" \t\n'\"\\$`*?[]{}()<>|&;#~!") == std::string::npos;
    std::string shown = text;
    if (!is_plain) {
      shown = "'";
      for (const char c : text) shown += c == '\'' ? std::string{"'\\''"} : std::string{c};
      shown += "'";
    }
    out += (out.empty() ? "" : " ") + shown;
  }
  return out;
}

std::string bytes_in_units(std::uint64_t bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  std::uint64_t tenths = bytes * 10;
  while (tenths >= 10'000 && unit + 1 < units.size()) {
    tenths /= 1000;
    ++unit;
  }
  const std::string whole = std::to_string(tenths / 10);
  if (unit == 0 || tenths >= 1000) return whole + " " + units[unit];
  return whole + "." + std::to_string(tenths % 10) + " " + units[unit];
}

std::string pretty(const bj::value& value) {
  std::string out;
  write_pretty(out, value, "");
  return out + "\n";
}

Cell Printer::cell(const bj::value& value, Shown shown) const {
  if (value.is_null()) return {"-", Paint::dim};
  if (shown == Shown::moment && value.is_string()) {
    if (const auto at = parse_iso8601(std::string_view{value.get_string()})) {
      return {relative_time(*at, options_.now), Paint::none};
    }
  }
  if (shown == Shown::state && value.is_string()) {
    return {plain(value), paint_of_state(plain(value))};
  }
  if (shown == Shown::bytes && value.is_int64() && value.get_int64() >= 0) {
    return {bytes_in_units(static_cast<std::uint64_t>(value.get_int64())), Paint::none};
  }
  if (value.is_array()) return {words_or_dash(value.get_array()), Paint::none};
  return {plain(value), Paint::none};
}

void Printer::list(const bj::array& rows, const std::vector<Column>& columns) const {
  if (options_.look == Look::json) {
    console_.out << pretty(rows);
    return;
  }
  if (options_.look == Look::name) {
    for (const bj::value& row : rows) console_.out << printable(handle_of(row)) << "\n";
    return;
  }
  if (rows.empty()) {
    note("none");
    return;
  }
  std::vector<Column> shown;
  std::ranges::copy_if(columns, std::back_inserter(shown), [&](const Column& column) {
    if (column.when == When::known) return is_known(rows, column.key);
    return column.when == When::always || options_.look == Look::wide;
  });
  std::vector<std::string> titles;
  titles.reserve(shown.size());
  for (const Column& column : shown) titles.push_back(column.title);
  std::vector<std::vector<Cell>> cells;
  for (const bj::value& row : rows) {
    std::vector<Cell>& line = cells.emplace_back();
    for (const Column& column : shown) {
      const bj::value* value = find_below(row, column.key);
      line.push_back(value != nullptr ? cell(*value, column.shown) : Cell{"-", Paint::dim});
    }
  }
  const bool is_wide = options_.look == Look::wide;
  for (std::size_t column = 0; !is_wide && column < shown.size(); ++column) {
    shorten_ids(cells, column);
  }
  // Only a terminal has a width; a pipe gets everything.
  const bool fits = console_.out_is_terminal && !is_wide;
  const TableStyle style{.columns = fits ? static_cast<std::size_t>(console_.columns) : 0,
                         .colour = options_.colour,
                         .whole = titles.front() == "ID" ? 1U : 0U};
  console_.out << render_table(titles, cells, style);
}

void Printer::object(const bj::value& value) const {
  if (options_.look == Look::json || !value.is_object()) {
    console_.out << pretty(value);
    return;
  }
  if (options_.look == Look::name) {
    console_.out << printable(handle_of(value)) << "\n";
    return;
  }
  std::size_t width = 0;
  for (const auto& [key, item] : value.get_object()) {
    width = std::max(width, display_width(spaced(key)));
  }
  for (const auto& [key, item] : value.get_object()) {
    const std::string name = spaced(printable(key));
    Cell shown = cell(item, shown_for(key));
    if (item.is_string()) shown.text = plain_value(key, shown.text);
    if (shown_for(key) == Shown::moment && item.is_string()) {
      shown.text += " (" + std::string{item.get_string()} + ")";
    }
    std::string text = printable(shown.text);
    if (is_nested(item)) text = indented(pretty(item));
    console_.out << (options_.colour ? painted(name, Paint::dim) : name)
                 << std::string(width - display_width(name) + 2, ' ')
                 << (options_.colour ? painted(text, shown.paint) : text) << "\n";
  }
}

void Printer::note(const std::string& text) const {
  const bool is_for_people = options_.look == Look::table || options_.look == Look::wide;
  if (is_for_people && !options_.quiet) console_.err << printable(text) << "\n";
}

void Printer::text(const std::string& text) const {
  console_.out << text;
}

}  // namespace berth::cli
