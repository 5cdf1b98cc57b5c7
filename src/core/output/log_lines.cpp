#include "core/output/log_lines.hpp"

#include "base/names.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace berth::core {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

bool is_plain(char c) {
  return c >= 0x20 && c != '"' && c != '\\';  // non-ASCII bytes are negative
}

std::string escape_of(char c) {
  constexpr std::string_view hex = "0123456789abcdef";
  constexpr std::string_view named = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  if (const std::size_t at = named.find(c); at != std::string_view::npos) {
    return {'\\', letters[at]};
  }
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
}

// Appends as many bytes as fit, escaped for a JSON string, and returns how many it consumed.
std::size_t append_chunk(std::string& out, std::string_view bytes, std::size_t size_max) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t run =
        std::find_if_not(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), is_plain) -
        bytes.begin() - static_cast<std::ptrdiff_t>(at);
    const std::size_t fits = std::min(run, size_max - out.size());
    out.append(bytes.substr(at, fits));
    at += fits;
    if (fits < run || at == bytes.size()) break;

    const std::string_view rest = bytes.substr(at);
    const std::size_t length = character_length(rest);
    const std::string shown = length == 0   ? std::string{replacement}
                              : length == 1 ? escape_of(rest[0])
                                            : std::string{rest.substr(0, length)};
    if (out.size() + shown.size() > size_max) break;
    out += shown;
    at += std::max<std::size_t>(length, 1);
  }
  return at;
}

// The part of the record from `offset`; empty when the record ends before it.
std::string_view from_offset(const OutputRecord& record, std::int64_t offset) {
  const std::int64_t skipped = std::max<std::int64_t>(0, offset - record.offset);
  return record.bytes.substr(std::min(static_cast<std::size_t>(skipped), record.bytes.size()));
}

}  // namespace

std::optional<std::string> LossNotes::take(std::string_view note) {
  constexpr std::string_view head = "lost ";
  constexpr std::string_view tail = " bytes of output";
  const std::string_view count = note.starts_with(head) ? note.substr(head.size()) : note;
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), bytes);
  const std::string_view rest{end, count.data() + count.size()};
  if (!note.starts_with(head) || error != std::errc{} || !rest.starts_with(tail)) {
    return std::string{note};
  }
  bytes_ += bytes;
  rest_ = rest;
  if (++notes_ > 1) return std::nullopt;
  return std::string{note};
}

std::optional<std::string> LossNotes::sum() const {
  if (notes_ < 2) return std::nullopt;
  return "lost " + std::to_string(bytes_) + rest_ + " (in all)";
}

std::string_view RecordCutter::push(std::string_view chunk) {
  // Usually nothing is held back, and the chunk needs no copy.
  if (!held_.empty()) {
    joined_.swap(held_);
    joined_ += chunk;
    chunk = joined_;
  }
  const std::size_t kept = chunk.size() - cut_character_length(chunk);
  held_ = chunk.substr(kept);
  return chunk.substr(0, kept);
}

std::string RecordCutter::flush() {
  return std::exchange(held_, {});
}

LogPage log_lines(std::span<const OutputRecord> records, std::int64_t offset,
                  std::size_t bytes_max) {
  bytes_max = std::max(bytes_max, log_page_bytes_min);
  LogPage page{.content = {}, .next_offset = offset};
  for (const OutputRecord& record : records) {
    const std::string_view bytes = from_offset(record, page.next_offset);
    if (bytes.empty()) continue;
    const std::size_t line_begin = page.content.size();
    const std::string head = R"({"ts":")" + to_iso8601(record.at) + R"(","stream":")" +
                             std::string{name_of(record.stream)} + R"(","chunk":")";
    const std::string tail = R"(","seq":)" + std::to_string(record.seq) + "}\n";
    if (line_begin + head.size() + tail.size() >= bytes_max) break;
    page.content += head;
    const std::size_t taken = append_chunk(page.content, bytes, bytes_max - tail.size());
    if (taken == 0) {
      page.content.resize(line_begin);
      break;
    }
    page.content += tail;
    page.next_offset = record.offset + static_cast<std::int64_t>(record.bytes.size()) -
                       static_cast<std::int64_t>(bytes.size() - taken);
    if (taken < bytes.size()) break;
  }
  return page;
}

LogPage log_bytes(std::span<const OutputRecord> records, std::int64_t offset, std::size_t bytes_max,
                  std::optional<OutputStream> stream) {
  LogPage page{.content = {}, .next_offset = offset};
  std::size_t there = 0;
  for (const OutputRecord& record : records) there += record.bytes.size();
  page.content.reserve(std::min(there, bytes_max));
  for (const OutputRecord& record : records) {
    const std::string_view bytes = from_offset(record, page.next_offset);
    const bool is_wanted = !stream || record.stream == *stream;
    const std::size_t room = bytes_max - page.content.size();
    const std::size_t taken = is_wanted ? std::min(bytes.size(), room) : bytes.size();
    if (is_wanted) page.content += bytes.substr(0, taken);
    if (bytes.empty()) continue;
    page.next_offset = record.offset + static_cast<std::int64_t>(record.bytes.size()) -
                       static_cast<std::int64_t>(bytes.size() - taken);
    if (taken < bytes.size()) break;
  }
  return page;
}

}  // namespace berth::core
