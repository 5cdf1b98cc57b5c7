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

// Secret values on their way out of a run: each is replaced before a byte of it is in the log of
// the run or sent. The keeper's own file of the output has them in clear until the lease ends.
namespace berth::core {

inline constexpr std::string_view redaction_mark = "***REDACTED***";
// Shorter values stand in too much innocent text; whoever stores one is told that it is not hidden.
inline constexpr std::size_t redactable_bytes_min = 4;

// The values to hide, and the other spellings in which tools print them: with CRLF for LF, as a
// JSON string, as a JSON string inside of a JSON string, percent-encoded, in hex, in base64 at each
// of its three alignments (so also inside "user:password"), and the longer lines of a value with
// several lines. Hex with blanks between the bytes, and hex and base64 that a tool breaks into
// lines, are not found. Made once per run, shared by its streams; costs about 20 bytes of memory
// per byte of pattern.
class RedactionSet {
 public:
  explicit RedactionSet(std::span<const Secret> values);
  RedactionSet(const RedactionSet&) = delete;
  RedactionSet& operator=(const RedactionSet&) = delete;
  RedactionSet(RedactionSet&&) noexcept = default;
  RedactionSet& operator=(RedactionSet&&) noexcept = default;
  ~RedactionSet();

  bool empty() const { return nodes_.size() <= 1; }
  // The most bytes that a Redactor withholds: the longest spelling but one byte.
  std::size_t held_bytes_max() const { return held_bytes_max_; }

 private:
  friend class Redactor;

  // A node of the trie of all patterns (Aho and Corasick, 1975): the path to it spells the longest
  // end of the text so far that begins a pattern. Children are a list, because most nodes have one.
  struct Node {
    std::uint32_t first_child = 0;
    std::uint32_t next_sibling = 0;
    std::uint32_t fallback = 0;  // the longest proper end of this path that is a path as well
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
  // From a place where no pattern has begun: the next one where one may begin.
  std::size_t next_start(std::string_view text, std::size_t at) const;

  std::vector<Node> nodes_{Node{}};
  std::array<std::uint32_t, 256> starts_{};  // the children of the root
  // The pairs of bytes that stand in the first `shortest_` bytes of some pattern. A pattern that
  // begins in a stretch of shortest_ - 1 bytes has one of them across the end of that stretch, so
  // one look per stretch is enough.
  std::unique_ptr<std::bitset<65536>> pairs_ = std::make_unique<std::bitset<65536>>();
  std::size_t shortest_ = 0;
  std::size_t held_bytes_max_ = 0;
};

// Redacts one stream that comes in chunks. What comes out does not depend on where the chunks are
// cut. Every byte of every occurrence is hidden: occurrences that overlap become one mark.
class Redactor {
 public:
  // The set must outlive its use here.
  explicit Redactor(const RedactionSet& set) : set_(&set) {}
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;
  ~Redactor();

  // What may leave now. Only an end that may still become a value is withheld.
  std::string push(std::string_view chunk);
  // What was withheld, at the end of the stream or where the reader must see all there is.
  std::string flush();
  // From the next byte on, hides the values of a larger set: a run was handed another secret.
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
  std::uint64_t emitted_ = 0;  // bytes of the stream that left, as they were or as a mark
  std::string held_;           // the bytes before `read_` that may still become a value
  std::vector<Span> covered_;  // occurrences that have not left yet, in order, apart
};

}  // namespace berth::core
