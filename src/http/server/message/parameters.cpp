#include "http/server/message/parameters.hpp"

#include <algorithm>
#include <charconv>

namespace berth::http {
namespace {

constexpr const char* address_remedy = "correct the address of the request and send it again";

// Text, for a name that no field has: the mapper rejects it.
api::Kind kind_of_field(const std::vector<api::Field>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &api::Field::name);
  return found != fields.end() ? found->kind : api::Kind::text;
}

}  // namespace

bj::object to_object(const std::vector<api::Field>& fields, const PathValues& values) {
  bj::object object;
  for (const auto& [name, text] : values) {
    object[name] = parameters_detail::to_value(kind_of_field(fields, name), text);
  }
  return object;
}

bj::object to_object(const std::vector<api::Field>& fields,
                     const std::map<std::string, std::string>& values) {
  bj::object object;
  for (const auto& [name, text] : values) {
    object[name] = parameters_detail::to_value(kind_of_field(fields, name), text);
  }
  return object;
}

namespace parameters_detail {

bj::value to_value(api::Kind kind, std::string_view text) {
  if (kind == api::Kind::boolean && (text == "true" || text == "false")) return text == "true";
  if (kind == api::Kind::integer) {
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
  error.remedy = address_remedy;
  return error;
}

Error out_of_range(Issue issue) {
  return Error{Errc::validation_failed,
               "query parameter '" + issue.path.substr(1) + "' " + issue.message,
               address_remedy,
               {std::move(issue)}};
}

}  // namespace parameters_detail
}  // namespace berth::http
