#pragma once

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::http {

// "%2Fa%20b" into "/a b". Fails on a broken escape and on NUL.
Result<std::string> percent_decoded(std::string_view text);
// The reverse: everything but letters, digits and "-._~" is escaped.
std::string percent_encoded(std::string_view text);

// The parsed target of a request line.
struct Target {
  std::string path;                   // as sent
  std::vector<std::string> segments;  // decoded: "/a/b%20c" is {"a", "b c"}
  std::string query_text;             // as sent, without the question mark
  std::map<std::string, std::string> query = {};
};

// Accepts "/path?query" and "http://authority/path?query"; the authority must be `host`, because
// the gate checks only the Host header. Fails with bad_request.
Result<Target> parse_target(std::string_view text, std::string_view host);
// The same in two steps, because a relayed query is parsed by the server behind the relay.
Result<Target> parse_path(std::string_view text, std::string_view host);
Result<std::map<std::string, std::string>> parse_query(std::string_view text);

}  // namespace berth::http
