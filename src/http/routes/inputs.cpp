#include "http/routes/inputs.hpp"

namespace berth::http {

Result<std::int64_t> bounded(std::string_view parameter, const std::optional<std::int64_t>& given,
                             api::Bounds bounds) {
  const std::int64_t value = given.value_or(bounds.usual);
  const std::optional<std::string> wrong = api::out_of_bounds(value, bounds);
  if (!wrong) return value;
  return std::unexpected(parameters_detail::out_of_range({"/" + std::string{parameter}, *wrong}));
}

}  // namespace berth::http
