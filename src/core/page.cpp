#include "core/page.hpp"

#include "base/id.hpp"

#include <charconv>

namespace berth::core {

std::string to_cursor(const PageKey& key) {
  return std::to_string(key.at.ms) + "." + key.id;
}

Result<PageKey> parse_cursor(std::string_view cursor) {
  const std::size_t dot = cursor.find('.');
  PageKey key;
  const char* end = cursor.data() + std::min(dot, cursor.size());
  const auto [stop, error] = std::from_chars(cursor.data(), end, key.at.ms);
  if (dot == std::string_view::npos || error != std::errc{} || stop != end ||
      !is_uuid(cursor.substr(dot + 1))) {
    return std::unexpected(Error{Errc::validation_failed,
                                 "query parameter 'after' is not a page cursor",
                                 "take it from the Link header of the page before",
                                 {{"/after", "is not a page cursor"}}});
  }
  key.id = cursor.substr(dot + 1);
  return key;
}

Result<PageRequest> parse_page(const std::optional<std::int64_t>& limit,
                               const std::optional<std::string>& after) {
  PageRequest request{.limit = limit.value_or(page_limit_default)};
  if (request.limit < 1 || request.limit > page_limit_max) {
    return std::unexpected(
        Error{Errc::validation_failed,
              "query parameter 'limit' must be from 1 to " + std::to_string(page_limit_max),
              "ask for a smaller page and follow its Link header",
              {{"/limit", "is out of range"}}});
  }
  if (after) {
    BERTH_TRY(request.after, parse_cursor(*after));
  }
  return request;
}

}  // namespace berth::core
