#pragma once

#include "base/secret.hpp"

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Hides secret values in a run's output: each is replaced before any byte of it is logged or sent.
// The keeper's own output file has them in clear text until the lease ends.
namespace berth::core {

inline constexpr std::string_view redaction_mark = "***REDACTED***";
// Shorter values occur in too much harmless text; users who store one are warned that it is not
// hidden.
inline constexpr std::size_t redactable_bytes_min = 4;

// The values to hide, and the other spellings in which tools print them: with CRLF for LF, as a
// JSON string, as a JSON string inside a JSON string, percent-encoded, in hex, and in base64 at
// each of its three alignments (so also inside "user:password"). The longer lines of a multi-line
// value are hidden too. Hex with spaces between bytes, and hex or base64 broken into lines, are not
// found. Created once per run and shared by its streams; uses about 20 bytes of memory per pattern
// byte.
class RedactionSet {
 public:
  explicit RedactionSet(std::span<const Secret> values);
  RedactionSet(const RedactionSet&) = delete;
  RedactionSet& operator=(const RedactionSet&) = delete;
  RedactionSet(RedactionSet&&) noexcept = default;
  RedactionSet& operator=(RedactionSet&&) noexcept = default;
  ~RedactionSet();

  bool empty() const { return nodes_.size() <= 1; }
  // The most bytes that a Redactor holds back: one less than the longest spelling.
  std::size_t held_bytes_max() const { return held_bytes_max_; }

 private:
  friend class Redactor;

  // A node in the trie of all patterns (Aho and Corasick, 1975): its path spells the longest suffix
  // of the text so far that begins a pattern. Children are a list, because most nodes have one.
  struct Node {
    std::uint32_t first_child = 0;
    std::uint32_t next_sibling = 0;
    std::uint32_t fallback = 0;  // the longest proper suffix of this path that is also a path
    std::uint32_t matched = 0;   // bytes of the longest pattern that ends here
    std::uint32_t held = 0;      // bytes at the end of this path that may still become a pattern
    char byte = 0;
  };
  static constexpr std::uint32_t root = 0;

  void add(std::string_view pattern);
  void link();
  void note_pairs(std::string_view pattern);
  std::uint32_t child(std::uint32_t node, char byte) const;
  std::uint32_t step(std::uint32_t node, char byte) const;
  // From an offset where no pattern has begun: the next offset where one may begin.
  std::size_t next_start(std::string_view text, std::size_t at) const;

  std::vector<Node> nodes_{Node{}};
  std::array<std::uint32_t, 256> starts_{};  // the children of the root
  // The byte pairs in the first `shortest_` bytes of all patterns. A pattern that begins within
  // shortest_ - 1 bytes has one of these pairs across the end of that stretch, so one lookup per
  // stretch is enough.
  std::unique_ptr<std::bitset<65536>> pairs_ = std::make_unique<std::bitset<65536>>();
  std::size_t shortest_ = 0;
  std::size_t held_bytes_max_ = 0;
};

// Redacts one stream that arrives in chunks. The output does not depend on the chunk boundaries.
// Every byte of every occurrence is hidden; overlapping occurrences become one mark.
class Redactor {
 public:
  // The set must outlive the redactor's use of it.
  explicit Redactor(const RedactionSet& set) : set_(&set) {}
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;
  ~Redactor();

  // Returns what can be emitted now. Only a suffix that may still become a value is held back.
  std::string push(std::string_view chunk);
  // Returns what was held back, at the end of the stream or when the reader needs everything.
  std::string flush();
  // From the next byte on, hides the values of a larger set: the run received another secret.
  void widen(const RedactionSet& set);

 private:
  struct Span {
    std::uint64_t begin;
    std::uint64_t end;
  };

  void scan(std::string_view text);
  void cover(Span found);
  std::string emit(std::uint64_t until, std::string_view chunk);

  const RedactionSet* set_;
  std::uint32_t node_ = RedactionSet::root;
  std::uint64_t read_ = 0;     // bytes of the stream that were scanned
  std::uint64_t emitted_ = 0;  // bytes of the stream that were emitted, as is or as a mark
  std::string held_;           // the bytes before `read_` that may still become a value
  std::vector<Span> covered_;  // occurrences not yet emitted, in order, disjoint
};

}  // namespace berth::core
