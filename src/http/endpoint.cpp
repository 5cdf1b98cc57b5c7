#include "http/endpoint.hpp"

#include "http/server/message/target.hpp"

namespace berth::http {

void Shape::add(In in, const std::vector<api::Field>& fields, std::vector<bj::object> schemas) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    parameters.push_back({.name = std::string{fields[i].name},
                          .in = in,
                          .need = fields[i].need,
                          .schema = std::move(schemas[i])});
  }
}

namespace endpoint_detail {

Result<bj::value> json_body(const Request& request) {
  if (request.body.empty()) return bj::value(bj::object{});
  const std::string& type = request.content_type;
  if (type != "application/json" && !type.ends_with("+json")) {
    return fail(Errc::unsupported_media_type,
                type.empty() ? "the body has no Content-Type"
                             : "the body is '" + type.substr(0, 64) + "', not JSON",
                "send the body as JSON with 'Content-Type: application/json'");
  }
  return parse_json(request.body, RepeatedKeys::refuse);
}

std::string next_link(const Request& request, std::string_view cursor) {
  std::string target = request.path + "?";
  for (const auto& [name, value] : request.query) {
    if (name != "after") target += percent_encoded(name) + "=" + percent_encoded(value) + "&";
  }
  return "<" + target + "after=" + percent_encoded(cursor) + ">; rel=\"next\"";
}

bool names_fit(std::string_view path, const std::vector<std::string_view>& members) {
  std::vector<std::string> names;
  while (path.contains('{')) {
    path.remove_prefix(path.find('{') + 1);
    names.push_back(parameter_name(path.substr(0, path.find('}'))));
  }
  return std::ranges::is_permutation(names, members);
}

}  // namespace endpoint_detail
}  // namespace berth::http
