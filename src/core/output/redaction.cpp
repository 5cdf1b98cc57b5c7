#include "core/output/redaction.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace berth::core {
namespace {

// An encoded short value is too likely to match something else.
constexpr std::size_t encodable_bytes_min = 8;
constexpr std::size_t line_bytes_min = 16;
// Longer stretches are not faster to search and make the pair table dense.
constexpr std::size_t stretch_max = 32;

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view high_hex = "0123456789ABCDEF";
constexpr std::string_view low_hex = "0123456789abcdef";

unsigned char unsigned_of(char c) {
  return static_cast<unsigned char>(c);
}

void wipe(std::string& text) {
  if (!text.empty()) ::explicit_bzero(text.data(), text.size());
  text.clear();
}

// The digits that depend only on the value when `before` unknown bytes precede it.
std::string base64_core(std::string_view value, std::size_t before) {
  const auto bit = [&](std::size_t at) {
    return (unsigned_of(value[at / 8]) >> (7 - at % 8)) & 1U;
  };
  std::string out;
  const std::size_t skipped = (6 - before * 8 % 6) % 6;
  for (std::size_t at = skipped; at + 6 <= value.size() * 8; at += 6) {
    unsigned digit = 0;
    for (std::size_t i = 0; i < 6; ++i) digit = digit << 1 | bit(at + i);
    out += base64_digits[digit];
  }
  return out;
}

// The whole encoding, without the padding.
std::string base64_whole(std::string_view value) {
  std::string padded{value};
  padded.resize((value.size() + 2) / 3 * 3);
  std::string out = base64_core(padded, 0);
  out.resize((value.size() * 8 + 5) / 6);
  wipe(padded);
  return out;
}

std::string url_safe(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::string in_hex(std::string_view value, std::string_view digits) {
  std::string out;
  for (const char c : value) out += {digits[unsigned_of(c) >> 4], digits[unsigned_of(c) & 15]};
  return out;
}

// `kept` lists the bytes that are not encoded, besides letters and digits.
std::string percent_encoded(std::string_view value, std::string_view kept,
                            std::string_view digits) {
  std::string out;
  for (const char c : value) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kept.contains(c);
    if (plain) {
      out += c;
    } else {
      out += {'%', digits[unsigned_of(c) >> 4], digits[unsigned_of(c) & 15]};
    }
  }
  return out;
}

// The pure-ASCII JSON form: one \uXXXX, or two for a UTF-16 surrogate pair.
std::string utf16_escaped(std::string_view character, std::string_view digits) {
  constexpr unsigned lead_bits[] = {0x1f, 0x0f, 0x07};
  std::uint32_t code = unsigned_of(character[0]) & lead_bits[character.size() - 2];
  for (const char c : character.substr(1)) code = code << 6 | (unsigned_of(c) & 0x3fU);
  std::string out;
  const auto add = [&](std::uint32_t unit) {
    out += "\\u";
    for (const unsigned shift : {12U, 8U, 4U, 0U}) out += digits[unit >> shift & 15];
  };
  if (code < 0x10000) {
    add(code);
  } else {
    add(0xd800 + ((code - 0x10000) >> 10));
    add(0xdc00 + ((code - 0x10000) & 0x3ff));
  }
  return out;
}

struct JsonStyle {
  bool escapes_slash = false;
  bool is_ascii = false;
  std::string_view digits = low_hex;
};

// A JSON string as programs write it: required escapes, and the style decides the rest.
std::string json_escaped(std::string_view value, const JsonStyle& style) {
  constexpr std::string_view named = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  std::string out;
  while (!value.empty()) {
    const char c = value.front();
    const std::size_t length = std::max<std::size_t>(character_length(value), 1);
    if (const std::size_t at = named.find(c); at != std::string_view::npos) {
      out += {'\\', letters[at]};
    } else if (unsigned_of(c) < 0x20) {
      out += "\\u00";
      out += in_hex(value.substr(0, 1), style.digits);
    } else if (c == '/' && style.escapes_slash) {
      out += "\\/";
    } else if (length > 1 && style.is_ascii) {
      out += utf16_escaped(value.substr(0, length), style.digits);
    } else {
      out += value.substr(0, length);
    }
    value.remove_prefix(length);
  }
  return out;
}

std::string with_crlf(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n' && !out.ends_with('\r')) out += '\r';
    out += c;
  }
  return out;
}

std::string_view without_line_ends(std::string_view value) {
  const std::size_t last = value.find_last_not_of("\r\n");
  return last == std::string_view::npos ? std::string_view{} : value.substr(0, last + 1);
}

std::vector<std::string> lines_of(std::string_view value) {
  std::vector<std::string> lines;
  while (!value.empty()) {
    const std::size_t end = value.find('\n');
    const std::string_view line = without_line_ends(value.substr(0, end));
    if (line.size() >= line_bytes_min) lines.emplace_back(line);
    value = end == std::string_view::npos ? std::string_view{} : value.substr(end + 1);
  }
  return lines;
}

// Most values contain nothing that any style escapes, so all spellings are the same.
void add_new(std::vector<std::string>& spellings, std::string spelling) {
  if (std::ranges::find(spellings, spelling) != spellings.end()) {
    wipe(spelling);
  } else {
    spellings.push_back(std::move(spelling));
  }
}

void add_json_spellings(std::vector<std::string>& spellings, std::string_view value) {
  for (const std::string_view digits : {low_hex, high_hex}) {
    for (const bool escapes_slash : {false, true}) {
      for (const bool is_ascii : {false, true}) {
        add_new(spellings, json_escaped(value, {escapes_slash, is_ascii, digits}));
      }
    }
  }
}

// What various JSON and URL libraries make of a value. Agents print their tools' output as JSON
// inside JSON, so a string is also escaped twice.
std::vector<std::string> escaped_spellings_of(std::string_view value) {
  std::vector<std::string> out{std::string{value}};
  add_json_spellings(out, value);
  const std::size_t once = out.size();
  out.reserve(once * once * 8 + 16);  // a reallocation would leave short strings behind
  for (std::size_t i = 1; i < once; ++i) add_json_spellings(out, out[i]);
  for (const std::string_view digits : {low_hex, high_hex}) {
    for (const std::string_view kept : {"-_.~", "-_.~/"}) {
      add_new(out, percent_encoded(value, kept, digits));
      // As in an HTML form.
      std::string with_plus = percent_encoded(value, std::string{kept} + " ", digits);
      std::ranges::replace(with_plus, ' ', '+');
      add_new(out, std::move(with_plus));
    }
  }
  return out;
}

std::vector<std::string> spellings_of(std::string_view value) {
  const std::string_view bare = without_line_ends(value);
  if (bare.size() < redactable_bytes_min) return {};
  std::vector<std::string> out = escaped_spellings_of(bare);
  if (bare.contains('\n')) {
    out.push_back(with_crlf(bare));
    std::ranges::move(lines_of(bare), std::back_inserter(out));
  }
  if (bare.size() < encodable_bytes_min) return out;
  for (const std::string_view digits : {low_hex, high_hex}) add_new(out, in_hex(bare, digits));
  // A value with a trailing newline is encoded with it: `base64 < key` reads the whole file.
  out.push_back(base64_whole(value));
  out.push_back(base64_whole(bare));
  for (std::size_t before = 0; before < 3; ++before) out.push_back(base64_core(bare, before));
  for (std::size_t i = out.size() - 5, end = out.size(); i < end; ++i) {
    out.push_back(url_safe(out[i]));
  }
  return out;
}

}  // namespace

RedactionSet::RedactionSet(std::span<const Secret> values) {
  std::vector<std::string> patterns;
  for (const Secret& value : values) {
    std::ranges::move(spellings_of(value.reveal()), std::back_inserter(patterns));
  }
  if (patterns.empty()) return;
  const auto size = [](const std::string& pattern) { return pattern.size(); };
  shortest_ = std::min(std::ranges::min(patterns, {}, size).size(), stretch_max);
  held_bytes_max_ = std::ranges::max(patterns, {}, size).size() - 1;
  std::size_t total = 1;
  for (const std::string& pattern : patterns) total += pattern.size();
  nodes_.reserve(total);  // a reallocation would leave the old content behind
  for (std::string& pattern : patterns) {
    add(pattern);
    note_pairs(pattern);
    wipe(pattern);
  }
  link();
}

RedactionSet::~RedactionSet() {
  // The trie paths spell the secrets.
  if (!nodes_.empty()) ::explicit_bzero(nodes_.data(), nodes_.size() * sizeof(Node));
}

void RedactionSet::note_pairs(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < shortest_; ++i) {
    pairs_->set(std::size_t{unsigned_of(pattern[i])} << 8 | unsigned_of(pattern[i + 1]));
  }
}

std::uint32_t RedactionSet::child(std::uint32_t node, char byte) const {
  if (node == root) return starts_[unsigned_of(byte)];
  std::uint32_t at = nodes_[node].first_child;
  while (at != root && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
  return at;
}

std::uint32_t RedactionSet::step(std::uint32_t node, char byte) const {
  for (;;) {
    const std::uint32_t next = child(node, byte);
    if (next != root || node == root) return next;
    node = nodes_[node].fallback;
  }
}

void RedactionSet::add(std::string_view pattern) {
  std::uint32_t at = root;
  for (const char byte : pattern) {
    std::uint32_t next = child(at, byte);
    if (next == root) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.next_sibling = nodes_[at].first_child, .byte = byte});
      nodes_[at].first_child = next;
      if (at == root) starts_[unsigned_of(byte)] = next;
    }
    at = next;
  }
  nodes_[at].matched = static_cast<std::uint32_t>(pattern.size());
}

// Breadth first, so that a fallback, which is always shorter, is complete when it is needed.
void RedactionSet::link() {
  struct Visit {
    std::uint32_t node;
    std::uint32_t depth;
  };
  std::vector<Visit> queue{{root, 0}};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto [parent, depth] = queue[i];
    for (auto at = nodes_[parent].first_child; at != root; at = nodes_[at].next_sibling) {
      Node& node = nodes_[at];
      node.fallback = parent == root ? root : step(nodes_[parent].fallback, node.byte);
      const Node& shorter = nodes_[node.fallback];
      node.matched = std::max(node.matched, shorter.matched);
      // A path without children is a whole pattern; only a shorter suffix of it may still grow.
      node.held = node.first_child != root ? depth + 1 : shorter.held;
      queue.push_back({at, depth + 1});
    }
  }
}

std::size_t RedactionSet::next_start(std::string_view text, std::size_t at) const {
  const std::size_t stride = shortest_ - 1;
  for (std::size_t last = at + stride - 1; last + 1 < text.size(); last += stride) {
    if (pairs_->test(std::size_t{unsigned_of(text[last])} << 8 | unsigned_of(text[last + 1]))) {
      return at;
    }
    at = last + 1;
  }
  return at;
}

Redactor::~Redactor() {
  wipe(held_);
}

void Redactor::cover(Span found) {
  while (!covered_.empty() && covered_.back().end > found.begin) {
    found.begin = std::min(found.begin, covered_.back().begin);
    found.end = std::max(found.end, covered_.back().end);
    covered_.pop_back();
  }
  covered_.push_back(found);
}

void Redactor::scan(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (node_ == RedactionSet::root) {
      i = set_->next_start(text, i);
      if (i >= text.size()) break;
    }
    node_ = set_->step(node_, text[i]);
    if (const std::uint32_t matched = set_->nodes_[node_].matched; matched != 0) {
      const std::uint64_t end = read_ + i + 1;
      cover({end - matched, end});
    }
  }
  read_ += text.size();
}

// Emits the stream up to `until`, before which no new occurrence can begin. An occurrence across
// `until` is held back, because it may still grow. `chunk` ends at `read_` and follows `held_`.
std::string Redactor::emit(std::uint64_t until, std::string_view chunk) {
  const std::uint64_t chunk_begin = read_ - chunk.size();
  const std::uint64_t held_begin = chunk_begin - held_.size();
  std::string out;
  out.reserve(held_.size() + chunk.size());
  const auto let_go = [&](std::uint64_t end) {
    if (emitted_ < std::min(end, chunk_begin)) {
      const std::uint64_t count = std::min(end, chunk_begin) - emitted_;
      out.append(held_, emitted_ - held_begin, count);
      emitted_ += count;
    }
    if (emitted_ < end) out.append(chunk.substr(emitted_ - chunk_begin, end - emitted_));
    emitted_ = std::max(emitted_, end);
  };
  auto span = covered_.begin();
  for (; span != covered_.end() && span->end <= until; ++span) {
    let_go(span->begin);
    out += redaction_mark;
    emitted_ = span->end;
  }
  let_go(span != covered_.end() ? std::min(span->begin, until) : until);
  covered_.erase(covered_.begin(), span);
  return out;
}

std::string Redactor::push(std::string_view chunk) {
  if (set_->empty()) {
    read_ += chunk.size();
    emitted_ = read_;
    return std::string{chunk};
  }
  scan(chunk);
  const std::uint64_t held = set_->nodes_[node_].held;
  std::string out = emit(read_ - held, chunk);
  std::string rest;
  if (held > chunk.size()) rest = held_.substr(held_.size() - (held - chunk.size()));
  rest += chunk.substr(chunk.size() - std::min<std::size_t>(held, chunk.size()));
  wipe(held_);
  held_ = std::move(rest);
  return out;
}

std::string Redactor::flush() {
  std::string out = emit(read_, {});
  node_ = RedactionSet::root;
  wipe(held_);
  return out;
}

void Redactor::widen(const RedactionSet& set) {
  set_ = &set;
  node_ = RedactionSet::root;
  // Emitted bytes cannot be recalled; the bytes still held are scanned with the new set.
  read_ -= held_.size();
  scan(held_);
}

}  // namespace berth::core
