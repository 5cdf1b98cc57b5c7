#include "http/server/message/parameters.hpp"

#include <charconv>

namespace berth::http::parameters_detail {

bj::value to_value(Kind kind, std::string_view text) {
  if (kind == Kind::boolean && (text == "true" || text == "false")) return text == "true";
  if (kind == Kind::integer) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && stop == text.data() + text.size()) return number;
  }
  return bj::string(text);
}

Error to_parameter_error(std::string_view where, Error error) {
  if (error.issues.empty()) return error;
  const Issue& first = error.issues.front();
  const std::string_view name = std::string_view{first.path}.substr(first.path.empty() ? 0 : 1);
  error.message = std::string{where} + " '" + std::string{name} + "': " + first.message;
  if (error.issues.size() > 1) {
    error.message += " (and " + std::to_string(error.issues.size() - 1) + " more)";
  }
  error.remedy = "correct the address of the request and send it again";
  return error;
}

}  // namespace berth::http::parameters_detail
