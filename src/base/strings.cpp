#include "base/strings.hpp"

#include <algorithm>

namespace berth {

std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out) c = lower(c);
  return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text, std::string_view blank) {
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string joined(const std::vector<std::string>& texts, std::string_view joint) {
  std::string out;
  for (const std::string& text : texts) {
    if (&text != &texts.front()) out += joint;
    out += text;
  }
  return out;
}

}  // namespace berth
