#pragma once

#include "api/fields.hpp"
#include "http/route.hpp"

#include <map>
#include <string>
#include <string_view>

// Decodes path or query text into a described struct with the mapper that decodes bodies: each text
// becomes the JSON value that its member expects.
namespace berth::http {

namespace parameters_detail {

// Text that does not fit remains text, and the mapper reports what was expected.
bj::value to_value(api::Kind kind, std::string_view text);
// Rewrites the mapper's error for parameters; the message names, for example, "query parameter
// 'limit'".
Error to_parameter_error(std::string_view where, Error error);
// A query parameter that is a number, but one that is not allowed.
Error out_of_range(Issue issue);

template <class T>
Result<T> decode_parameters(const bj::object& values, std::string_view where) {
  Result<T> decoded = decode<T>(bj::value(values));
  if (decoded) return decoded;
  return std::unexpected(to_parameter_error(where, std::move(decoded).error()));
}

}  // namespace parameters_detail

bj::object to_object(const std::vector<api::Field>& fields, const PathValues& values);
bj::object to_object(const std::vector<api::Field>& fields,
                     const std::map<std::string, std::string>& values);

template <class Path>
Result<Path> decode_path(const PathValues& values) {
  if constexpr (boost::mp11::mp_empty<MembersOf<Path>>::value) {
    return Path{};
  } else {
    return parameters_detail::decode_parameters<Path>(to_object(api::fields_of<Path>(), values),
                                                      "path parameter");
  }
}

// Unknown parameters are rejected, so that a misspelt filter does not list everything.
template <class Query>
Result<Query> decode_query(const std::map<std::string, std::string>& values) {
  return parameters_detail::decode_parameters<Query>(to_object(api::fields_of<Query>(), values),
                                                     "query parameter");
}

}  // namespace berth::http
