#include "places/ssh/quoting.hpp"

namespace berth::places::ssh {

std::string shell_word(std::string_view text) {
  std::string word = "'";
  word.reserve(text.size() + 2);
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else if (c == '\n') {
      word += "'\"$berth_newline\"'";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace berth::places::ssh
