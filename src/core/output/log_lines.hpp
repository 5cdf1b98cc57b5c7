#pragma once

#include "base/time.hpp"
#include "core/enums.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The output of a run as the API returns it. An offset counts bytes of output after redaction, both
// streams together in arrival order. A client that continues at the offset of the last response
// misses nothing and sees nothing twice.
namespace berth::core {

// Output of one stream at one time.
struct OutputRecord {
  std::int64_t seq = 0;     // from 1
  std::int64_t offset = 0;  // bytes of output before this record
  Time at = {};
  OutputStream stream = OutputStream::stdout_;
  std::string_view bytes = {};
};

// Cuts one stream into records that do not end inside a UTF-8 character, so that each can be shown
// by itself. Bytes that are not text pass unchanged.
class RecordCutter {
 public:
  // Returns everything held back plus the chunk, except up to three bytes that start a character.
  // The result is valid until the next call and no longer than the chunk.
  std::string_view push(std::string_view chunk);
  std::string flush();

 private:
  std::string held_;
  std::string joined_;
};

// A keeper notes "lost 42 bytes of output: REASON" for each piece of output that its disk refused.
// The first note is reported as is, and all others as one sum.
class LossNotes {
 public:
  // The text to report for this note now; empty for a further loss.
  std::optional<std::string> take(std::string_view note);
  // At the end: the sum, if there were more losses than reported.
  std::optional<std::string> sum() const;

 private:
  std::int64_t notes_ = 0;
  std::int64_t bytes_ = 0;
  std::string rest_;  // " bytes of output: REASON"
};

struct LogPage {
  std::string content;
  std::int64_t next_offset = 0;
};

inline constexpr std::size_t log_page_bytes_min = 512;  // a line with one character always fits

// Lines of {"ts","stream","chunk","seq"} for consecutive records, from the one that contains
// `offset`. Invalid UTF-8 becomes U+FFFD. The content has at most `bytes_max` bytes; a record that
// does not fit is cut between characters.
LogPage log_lines(std::span<const OutputRecord> records, std::int64_t offset,
                  std::size_t bytes_max);

// The same as raw bytes, of one stream or both.
LogPage log_bytes(std::span<const OutputRecord> records, std::int64_t offset, std::size_t bytes_max,
                  std::optional<OutputStream> stream);

}  // namespace berth::core
