#pragma once

#include "http/limits.hpp"
#include "http/server/message/message.hpp"

#include <boost/beast/http/basic_parser.hpp>

namespace berth::http {

// How a request is transmitted, from its first lines.
struct Head {
  enum class Version { http_1_0, http_1_1 };
  enum class Method { as_verb, head, other };  // HEAD is a GET whose response has no body

  Version version = Version::http_1_1;
  Method method = Method::as_verb;
  std::string method_text;  // as sent, for a relay
  std::string target;
};

// Turns bytes into one Request: Beast parses the syntax, this class decides what is accepted. It
// does not touch a socket, so that a fuzzer runs the same code as a client.
class RequestReader : private boost::beast::http::basic_parser<true> {
 public:
  enum class Stage { head, body, done };

  // Fills `request`, which outlives the reader; only its remote address is kept.
  RequestReader(Request& request, const Limits& limits);

  // Takes what it can use and returns how much that was; offer the rest again with the bytes that
  // follow. Stops after the head and after the body. Fails with bad_request, header_too_large or
  // body_too_large.
  Result<std::size_t> feed(std::string_view bytes);
  Stage stage() const;
  bool started() const { return head_bytes_ > 0; }

  // Valid once the head was read.
  const Head& head() const { return head_; }
  bool keeps_alive() const { return keep_alive(); }
  bool expects_continue() const;
  // As declared in the head; a chunked body has a length only when it is complete.
  std::optional<std::uint64_t> body_length() const;
  // Sets the route's limit; call it between head and body.
  Result<> limit_body(std::size_t bytes_max);

 private:
  using Errors = boost::beast::error_code;
  using Text = boost::beast::string_view;

  Result<> check_head();
  Result<std::size_t> put_some(std::string_view bytes);

  void on_request_impl(boost::beast::http::verb verb, Text method, Text target, int version,
                       Errors& error) override;
  void on_response_impl(int code, Text reason, int version, Errors& error) override;
  void on_field_impl(boost::beast::http::field field, Text name, Text value,
                     Errors& error) override;
  void on_header_impl(Errors& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, Errors& error) override;
  std::size_t on_body_impl(Text bytes, Errors& error) override;
  void on_chunk_header_impl(std::uint64_t size, Text extensions, Errors& error) override;
  std::size_t on_chunk_body_impl(std::uint64_t remain, Text bytes, Errors& error) override;
  void on_finish_impl(Errors& error) override;

  Request& request_;
  const Limits& limits_;
  Head head_;
  std::size_t head_bytes_ = 0;
};

}  // namespace berth::http
