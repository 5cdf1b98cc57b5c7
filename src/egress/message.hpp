#pragma once

#include "base/result.hpp"
#include "base/strings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The heads of HTTP/1 messages, taken apart without any leniency: what two parsers on the way could
// read differently is refused, never repaired.
namespace berth::egress {

enum class Version { http_1_0, http_1_1 };

struct Field {
  std::string name;
  std::string value;
};

class Fields {
 public:
  void add(std::string name, std::string value);
  // The first field of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  // Without the fields that are about one connection only: those known for it and those that
  // Connection names.
  Fields end_to_end() const;
  // Connection says this word.
  bool connection_says(std::string_view word) const;
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }

 private:
  std::vector<Field> list_;
};

struct RequestHead {
  std::string method;
  std::string target;
  Version version = Version::http_1_1;
  Fields fields;
};

struct ResponseHead {
  unsigned status = 0;
  std::string reason;
  Version version = Version::http_1_1;
  Fields fields;
};

// Finds the end of a head in bytes that arrive piece by piece, looking at each byte once.
class HeadEnd {
 public:
  // The size of the head with its empty line; nothing while it is not complete. The bytes are the
  // same each time, with more behind them. Fails bad_request at a line end that is no CRLF, as soon
  // as it is seen.
  Result<std::optional<std::size_t>> find(std::string_view bytes);

 private:
  std::size_t line_ = 0;  // where the line begins
  std::size_t seen_ = 0;  // no line ends before this
};

// Both take a head with its empty line. Fail bad_request or header_too_large (too many fields).
Result<RequestHead> parse_request_head(std::string_view text);
Result<ResponseHead> parse_response_head(std::string_view text);

// How the end of a body is known.
struct Framing {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;

  friend bool operator==(const Framing&, const Framing&) = default;
};

// Fail bad_request where the head says it twice or unclearly.
Result<Framing> framing_of(const RequestHead& head);
Result<Framing> framing_of(const ResponseHead& head, std::string_view method);

// What of a piece of a body belongs to it.
struct BodyPiece {
  std::size_t used = 0;  // bytes taken off, framing included
  std::string_view content;
};

// Takes the framing off a body. Chunk extensions and trailers are dropped, so that whoever sends
// the content on frames it anew.
class BodyReader {
 public:
  explicit BodyReader(Framing framing) : framing_(framing), rest_(framing.length) {}

  // With `used` 0 more bytes are needed; they are offered again together with those that follow.
  // Fails bad_request.
  Result<BodyPiece> take(std::string_view bytes);
  bool done() const;
  // The sender closed its side: fails bad_request when content is missing.
  Result<> end();

 private:
  enum class State { size, content, content_end, trailer, done };

  Result<BodyPiece> take_chunked(std::string_view bytes);
  Result<BodyPiece> take_size(std::string_view line, std::size_t used);
  BodyPiece take_content(std::string_view bytes);

  Framing framing_;
  std::uint64_t rest_ = 0;  // of the body or of the chunk
  State state_ = State::size;
  std::size_t trailer_bytes_ = 0;
  bool closed_ = false;
};

// The head of a chunk: its size and a line end. The content and another line end follow.
std::string chunk_head(std::size_t size);

}  // namespace berth::egress
