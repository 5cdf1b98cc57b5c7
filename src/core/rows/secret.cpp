#include "core/rows/secret.hpp"

namespace berth::core {

std::string secret_key_of(std::string_view name) {
  constexpr std::size_t length_max = 120;
  std::string key;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || upper;
    if (kept) {
      key += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!key.empty() && key.back() != '-') {
      key += '-';
    }
  }
  key = key.substr(0, length_max);
  while (key.ends_with('-')) key.pop_back();
  return key;
}

}  // namespace berth::core
