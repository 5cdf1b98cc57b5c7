#pragma once

#include "http/limits.hpp"
#include "http/server/message/message.hpp"

#include <boost/beast/http/basic_parser.hpp>

namespace berth::http {

// What the first lines of a request say about how it travels.
struct Head {
  enum class Version { http_1_0, http_1_1 };
  enum class Method { as_verb, head, other };  // HEAD is a GET whose answer has no body

  Version version = Version::http_1_1;
  Method method = Method::as_verb;
  std::string method_text;  // as sent, for who passes it on
  std::string target;
};

// Turns bytes into one Request: Beast takes the syntax apart, this class decides what is let in.
// It touches no socket, so that a fuzzer drives the same code as a client.
class RequestReader : private boost::beast::http::basic_parser<true> {
 public:
  enum class Stage { head, body, done };

  // Fills `request`, which outlives the reader and keeps its remote address only.
  RequestReader(Request& request, const Limits& limits);

  // Takes what it can use and says how much that was; the rest is offered again with what comes
  // after it. Stops behind the head and behind the body. Fails bad_request, header_too_large or
  // body_too_large.
  Result<std::size_t> feed(std::string_view bytes);
  Stage stage() const;
  bool started() const { return head_bytes_ > 0; }

  // From here on there is a head.
  const Head& head() const { return head_; }
  bool keeps_alive() const { return keep_alive(); }
  bool expects_continue() const;
  // As the head tells it; a body in chunks has a length only when it is over.
  std::optional<std::uint64_t> body_length() const;
  // What the route allows; to be called between head and body.
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
