#include "http/routes/inputs.hpp"

namespace berth::http {

Result<std::int64_t> bounded(std::string_view parameter, const std::optional<std::int64_t>& given,
                             Bounds bounds) {
  const std::int64_t value = given.value_or(bounds.usual);
  if (value >= bounds.least && value <= bounds.most) return value;
  const std::string range =
      "must be from " + std::to_string(bounds.least) + " to " + std::to_string(bounds.most);
  return std::unexpected(Error{Errc::validation_failed,
                               "query parameter '" + std::string{parameter} + "' " + range,
                               "correct the address of the request and send it again",
                               {{"/" + std::string{parameter}, range}}});
}

}  // namespace berth::http
