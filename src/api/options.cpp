#include "api/options.hpp"

namespace berth::api {

std::optional<std::string> out_of_bounds(std::int64_t value, Bounds bounds) {
  if (value >= bounds.least && value <= bounds.most) return std::nullopt;
  return "must be from " + std::to_string(bounds.least) + " to " + std::to_string(bounds.most);
}

Result<> check_bounds(std::initializer_list<BoundedOption> options) {
  for (const BoundedOption& option : options) {
    const auto wrong = out_of_bounds(option.given.value_or(option.bounds.usual), option.bounds);
    if (!wrong) continue;
    const std::string pointer = "/" + std::string{option.name};
    return std::unexpected(Error{Errc::validation_failed,
                                 pointer + " " + *wrong,
                                 "correct the named fields and send it again",
                                 {{pointer, *wrong}}});
  }
  return {};
}

}  // namespace berth::api
