#pragma once

#include "base/time.hpp"
#include "core/enums.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The output of a run as the API gives it. A place in it is a number of bytes of output, both
// streams together in order of arrival, after redaction: whoever reads on at the place that the
// last answer named misses nothing and sees nothing twice.
namespace berth::core {

// Output of one stream at one moment.
struct OutputRecord {
  std::int64_t seq = 0;     // from 1
  std::int64_t offset = 0;  // the bytes of output before this record
  Time at = {};
  OutputStream stream = OutputStream::stdout_;
  std::string_view bytes = {};
};

// Cuts one stream into records that do not end inside a UTF-8 character, so that each can be shown
// by itself. Bytes that are no text pass unchanged.
class RecordCutter {
 public:
  // All that was withheld and the chunk, but for at most three bytes that begin a character. What
  // is returned lives until the next call, and as long as the chunk.
  std::string_view push(std::string_view chunk);
  std::string flush();

 private:
  std::string held_;
  std::string joined_;
};

// What a keeper notes of output that its disk refused: "lost 42 bytes of output: REASON", for every
// piece anew. The first is told as it is, and all the rest in one sum.
class LossNotes {
 public:
  // What to tell of this note now; nothing where it is one more loss.
  std::optional<std::string> take(std::string_view note);
  // At the end, where there was more than was told.
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

// {"ts","stream","chunk","seq"}, one a line, of the records that follow each other from the first
// one that holds `offset`; bytes that are no UTF-8 become U+FFFD. The content has at most
// `bytes_max` bytes; a record that does not fit is cut between characters.
LogPage log_lines(std::span<const OutputRecord> records, std::int64_t offset,
                  std::size_t bytes_max);

// The same as the bytes themselves, of one stream or both.
LogPage log_bytes(std::span<const OutputRecord> records, std::int64_t offset, std::size_t bytes_max,
                  std::optional<OutputStream> stream);

}  // namespace berth::core
