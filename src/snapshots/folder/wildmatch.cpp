#include "snapshots/folder/wildmatch.hpp"

#include <array>
#include <cctype>
#include <cstddef>
#include <optional>

namespace berth::snapshots {
namespace {

// Nested stars take exponential time in the worst case; a real pattern takes a few hundred steps.
constexpr int steps_max = 100'000;

struct CharacterClass {
  std::string_view name;
  int (*matches)(int);
};

int is_blank_character(int c) {
  return c == ' ' || c == '\t' ? 1 : 0;
}

constexpr std::array<CharacterClass, 12> classes = {{
    {"alnum", [](int c) { return std::isalnum(c); }},
    {"alpha", [](int c) { return std::isalpha(c); }},
    {"blank", is_blank_character},
    {"cntrl", [](int c) { return std::iscntrl(c); }},
    {"digit", [](int c) { return std::isdigit(c); }},
    {"graph", [](int c) { return std::isprint(c) != 0 && std::isspace(c) == 0 ? 1 : 0; }},
    {"lower", [](int c) { return std::islower(c); }},
    {"print", [](int c) { return std::isprint(c); }},
    {"punct", [](int c) { return std::ispunct(c); }},
    {"space", [](int c) { return std::isspace(c); }},
    {"upper", [](int c) { return std::isupper(c); }},
    {"xdigit", [](int c) { return std::isxdigit(c); }},
}};

// The matcher follows git's own step for step, because its corner cases are what users rely on.
class Matcher {
 public:
  Matcher(std::string_view pattern, std::string_view text) : pattern_(pattern), text_(text) {}

  enum class Outcome { match, no_match, abort_all, abort_to_starstar };

  Outcome match(std::size_t p, std::size_t t) {
    for (; p < pattern_.size(); ++p, ++t) {
      if (++steps_ > steps_max) return Outcome::abort_all;
      const char wanted = pattern_[p];
      if (t >= text_.size() && wanted != '*') return Outcome::abort_all;
      if (wanted == '*') return match_star(p, t);
      if (wanted == '?') {
        if (text_[t] == '/') return Outcome::no_match;
      } else if (wanted == '[') {
        const auto in_set = match_set(p, text_[t]);
        if (!in_set) return Outcome::abort_all;
        if (!*in_set || text_[t] == '/') return Outcome::no_match;
      } else {
        if (wanted == '\\') ++p;
        if (at(p) != text_[t]) return Outcome::no_match;
      }
    }
    return t < text_.size() ? Outcome::no_match : Outcome::match;
  }

 private:
  // 0 at the end, as in the C string that git reads.
  char at(std::size_t p) const { return p < pattern_.size() ? pattern_[p] : '\0'; }

  Outcome match_star(std::size_t p, std::size_t t) {
    const std::size_t first = p;
    bool over_slashes = false;
    if (at(++p) == '*') {
      while (at(++p) == '*') {
      }
      const bool opens = first == 0 || pattern_[first - 1] == '/';
      const bool closes =
          p >= pattern_.size() || at(p) == '/' || (at(p) == '\\' && at(p + 1) == '/');
      if (opens && closes) {
        // "**/" also matches no folder at all.
        if (at(p) == '/' && match(p + 1, t) == Outcome::match) return Outcome::match;
        over_slashes = true;
      }
    }
    if (p >= pattern_.size()) {
      if (!over_slashes && text_.substr(t).contains('/')) return Outcome::abort_to_starstar;
      return Outcome::match;
    }
    if (!over_slashes && at(p) == '/') {
      const std::size_t slash = text_.find('/', t);
      if (slash == std::string_view::npos) return Outcome::abort_all;
      return match(p + 1, slash + 1);
    }
    return search(p, t, over_slashes ? Slashes::crossed : Slashes::kept);
  }

  enum class Slashes { kept, crossed };

  Outcome search(std::size_t p, std::size_t t, Slashes slashes) {
    for (; t < text_.size(); ++t) {
      const Outcome found = match(p, t);
      if (found != Outcome::no_match) {
        if (slashes == Slashes::kept || found != Outcome::abort_to_starstar) return found;
      } else if (slashes == Slashes::kept && text_[t] == '/') {
        return Outcome::abort_to_starstar;
      }
      if (steps_ > steps_max) return Outcome::abort_all;
    }
    return Outcome::abort_all;
  }

  // Reads a set from its "[" and leaves `p` at its "]". Nothing if the set is malformed.
  std::optional<bool> match_set(std::size_t& p, char c) {
    char next = at(++p);
    const bool negated = next == '!' || next == '^';
    if (negated) next = at(++p);
    bool found = false;
    char previous = 0;
    do {
      if (p >= pattern_.size()) return std::nullopt;
      if (next == '\\') {
        next = at(++p);
        if (p >= pattern_.size()) return std::nullopt;
        found = found || c == next;
      } else if (next == '-' && previous != 0 && p + 1 < pattern_.size() && at(p + 1) != ']') {
        next = at(++p);
        if (next == '\\') {
          next = at(++p);
          if (p >= pattern_.size()) return std::nullopt;
        }
        found = found || (octet(c) <= octet(next) && octet(c) >= octet(previous));
        next = 0;  // a range does not begin another
      } else if (next == '[' && at(p + 1) == ':') {
        const std::size_t name = p + 2;
        const std::size_t end = pattern_.find(']', name);
        if (end == std::string_view::npos) return std::nullopt;
        if (end == name || pattern_[end - 1] != ':') {
          found = found || c == '[';  // an ordinary bracket
        } else {
          const auto in_class = match_class(pattern_.substr(name, end - 1 - name), c);
          if (!in_class) return std::nullopt;
          found = found || *in_class;
          p = end;
          next = 0;
        }
      } else {
        found = found || c == next;
      }
      previous = next;
      next = at(++p);
    } while (next != ']');
    return found != negated;
  }

  static std::optional<bool> match_class(std::string_view name, char c) {
    for (const CharacterClass& known : classes) {
      if (known.name == name) return octet(c) < 0x80 && known.matches(octet(c)) != 0;
    }
    return std::nullopt;
  }

  static int octet(char c) { return static_cast<unsigned char>(c); }

  std::string_view pattern_;
  std::string_view text_;
  int steps_ = 0;
};

}  // namespace

bool wildmatch(std::string_view pattern, std::string_view path) {
  return Matcher{pattern, path}.match(0, 0) == Matcher::Outcome::match;
}

}  // namespace berth::snapshots
