#include "keeper/protocol/text_record.hpp"

namespace berth::keeper::text_record_detail {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\0': out += "\\0"; break;
      default: out += c;
    }
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    out += next == 'n' ? '\n' : next == '0' ? '\0' : next;
  }
  return out;
}

std::optional<std::string_view> line_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
      return line.substr(name.size() + 1);
    }
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

bool is_whole(std::string_view text) {
  return text == ".\n" || text.ends_with("\n.\n");
}

}  // namespace berth::keeper::text_record_detail
