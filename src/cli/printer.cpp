#include "cli/printer.hpp"

#include <boost/json/serialize.hpp>

#include <ostream>

namespace berth::cli {
namespace {

Paint paint_of(std::string_view state) {
  for (const auto* good : {"active", "current", "ok", "ready", "success", "running"}) {
    if (state == good) return Paint::green;
  }
  for (const auto* bad :
       {"error", "failed", "failure", "terminated", "revoked", "deleted", "fail", "not_allowed"}) {
    if (state == bad) return Paint::red;
  }
  return Paint::yellow;
}

const bj::value* find(const bj::value& row, std::string_view path) {
  const bj::value* at = &row;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (!at->is_object()) return nullptr;
    at = at->get_object().if_contains(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string plain(const bj::value& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return std::string{value.get_string()};
  return bj::serialize(value);
}

std::string joined(const bj::array& words) {
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

// What would be one long line of JSON.
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

}  // namespace

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
  if (shown == Shown::state && value.is_string()) return {plain(value), paint_of(plain(value))};
  if (value.is_array()) return {joined(value.get_array()), Paint::none};
  return {plain(value), Paint::none};
}

void Printer::list(const bj::array& rows, const std::vector<Column>& columns) const {
  if (options_.look == Look::json) {
    console_.out << pretty(rows);
    return;
  }
  if (rows.empty()) {
    note("none");
    return;
  }
  std::vector<std::string> titles;
  titles.reserve(columns.size());
  for (const Column& column : columns) titles.push_back(column.title);
  std::vector<std::vector<Cell>> cells;
  for (const bj::value& row : rows) {
    std::vector<Cell>& line = cells.emplace_back();
    for (const Column& column : columns) {
      const bj::value* value = find(row, column.key);
      line.push_back(value != nullptr ? cell(*value, column.shown) : Cell{"-", Paint::dim});
    }
  }
  const TableStyle style{.columns = static_cast<std::size_t>(console_.columns),
                         .colour = options_.colour,
                         .whole = titles.front() == "ID" ? 1U : 0U};
  console_.out << render_table(titles, cells, style);
}

void Printer::object(const bj::value& value) const {
  if (options_.look == Look::json || !value.is_object()) {
    console_.out << pretty(value);
    return;
  }
  std::size_t width = 0;
  for (const auto& [key, item] : value.get_object()) {
    width = std::max(width, display_width(spaced(key)));
  }
  for (const auto& [key, item] : value.get_object()) {
    const std::string name = spaced(printable(key));
    Cell shown = cell(item, shown_for(key));
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
  if (options_.look == Look::people && !options_.quiet) console_.err << printable(text) << "\n";
}

void Printer::text(const std::string& text) const {
  console_.out << text;
}

}  // namespace berth::cli
