#pragma once

#include "base/result.hpp"
#include "base/strings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Parses HTTP/1 message heads strictly: what two parsers on the way could read differently is
// rejected, never repaired.
namespace berth::egress {

enum class Version { http_1_0, http_1_1 };

struct Field {
  std::string name;
  std::string value;
};

class Fields {
 public:
  void add(std::string name, std::string value);
  // The first field with that name.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  // Without hop-by-hop fields: the standard ones and those that Connection names.
  Fields end_to_end() const;
  // Whether Connection contains this word.
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

// Finds the end of a head in bytes that arrive in pieces; checks each byte once.
class HeadEnd {
 public:
  // The size of the head with its empty line; empty while it is incomplete. Each call must pass the
  // same bytes, with more appended. Fails bad_request as soon as it sees a line end that is not
  // CRLF.
  Result<std::optional<std::size_t>> find(std::string_view bytes);

 private:
  std::size_t line_ = 0;  // where the line begins
  std::size_t seen_ = 0;  // no line ends before this
};

// Both take a head with its empty line. They fail bad_request or header_too_large (too many
// fields).
Result<RequestHead> parse_request_head(std::string_view text);
Result<ResponseHead> parse_response_head(std::string_view text);

// How the end of a body is determined.
struct Framing {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;

  friend bool operator==(const Framing&, const Framing&) = default;
};

// Fail bad_request if the head states it twice or ambiguously.
Result<Framing> framing_of(const RequestHead& head);
Result<Framing> framing_of(const ResponseHead& head, std::string_view method);

// The result for a piece of a body.
struct BodyPiece {
  std::size_t used = 0;  // bytes consumed, including framing
  std::string_view content;
};

// Removes the framing from a body. Chunk extensions and trailers are dropped, so the sender frames
// the content anew.
class BodyReader {
 public:
  explicit BodyReader(Framing framing) : framing_(framing), rest_(framing.length) {}

  // If `used` is 0, more bytes are needed; the caller passes these again with those that follow.
  // Fails bad_request.
  Result<BodyPiece> take(std::string_view bytes);
  bool done() const;
  // The sender closed its side: fails bad_request if content is missing.
  Result<> end();

 private:
  enum class State { size, content, content_end, trailer, done };

  Result<BodyPiece> take_chunked(std::string_view bytes);
  Result<BodyPiece> take_size(std::string_view line, std::size_t used);
  BodyPiece take_content(std::string_view bytes);

  Framing framing_;
  std::uint64_t rest_ = 0;  // of the body or the chunk
  State state_ = State::size;
  std::size_t trailer_bytes_ = 0;
  bool closed_ = false;
};

// The head of a chunk: its size and a line end. The content and another line end follow.
std::string chunk_head(std::size_t size);

}  // namespace berth::egress
