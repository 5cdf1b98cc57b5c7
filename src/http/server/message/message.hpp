#pragma once

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "base/strings.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Requests and responses as the rest of the program sees them: whole, decoded, free of Beast.
namespace berth::http {

// NOLINTNEXTLINE(readability-identifier-naming): delete is a keyword
BOOST_DEFINE_ENUM_CLASS(Verb, get, post, put, patch, delete_)

// "GET", "DELETE": as in the request line and the Allow header.
std::string method_of(Verb verb);

// The header fields of one request in one block of text, so that a reused request does not
// allocate.
class Headers {
 public:
  void add(std::string_view name, std::string_view value);
  // The first field with that name, ignoring case. The view is valid until the next add or clear.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  std::size_t size() const { return entries_.size(); }
  // Name and value, in the order of arrival.
  std::pair<std::string_view, std::string_view> at(std::size_t index) const {
    return {name(entries_[index]), value(entries_[index])};
  }
  void clear();

 private:
  struct Entry {
    std::uint32_t at;
    std::uint32_t name_size;
    std::uint32_t value_size;
  };
  std::string_view name(const Entry& entry) const;
  std::string_view value(const Entry& entry) const;

  std::string text_;
  std::vector<Entry> entries_;
};

// A whole request, body included.
struct Request {
  Verb verb = Verb::get;
  std::string path;                          // as sent: still percent-encoded, without the query
  std::map<std::string, std::string> query;  // percent-decoded; each name occurs once
  std::string body;
  std::string content_type;  // the media type in lower case, without its parameters
  Headers headers;
  std::string remote_address;
  // The local user at the other end, if the server looks it up and the kernel knows it.
  std::optional<unsigned> peer_user;
  std::string request_id;

  std::optional<std::string> header(std::string_view name) const;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};

  std::optional<std::string> header(std::string_view name) const;
};

// A response without a body: 204.
struct NoContent {};

template <class T>
Response json_response(unsigned status, const T& body) {
  return Response{.status = status, .body = encode_text(body)};
}

// The only switch from an error code to a status.
unsigned status_of(Errc code);
// {"error", "code", "remedy"?, "details"?}, where details holds the invalid fields as "issues" and
// every fact under its own name.
Response error_response(const Error& error);

}  // namespace berth::http
