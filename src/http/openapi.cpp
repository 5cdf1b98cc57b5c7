#include "http/openapi.hpp"

#include "base/json_schema.hpp"

namespace berth::http {
namespace {

// The body of every error, as error_response writes it.
bj::object error_schema() {
  const bj::object text{{"type", "string"}};
  const bj::object issue{
      {"type", "object"},
      {"properties", bj::object{{"path", text}, {"message", text}}},
      {"required", bj::array{"path", "message"}},
  };
  const bj::object details{
      {"type", "object"},
      {"properties", bj::object{{"issues", bj::object{{"type", "array"}, {"items", issue}}}}},
      {"additionalProperties", true},
  };
  return {
      {"type", "object"},
      {"properties",
       bj::object{{"error", text}, {"code", text}, {"remedy", text}, {"details", details}}},
      {"required", bj::array{"error", "code"}},
  };
}

bj::object with_description(std::string_view description) {
  return {{"description", description}};
}

bj::object content(std::string_view type, bj::object schema) {
  return {{type, bj::object{{"schema", std::move(schema)}}}};
}

// "get" and "/api/companies/{company}/agents" make "getCompaniesByCompanyAgents".
std::string operation_id(const Route& route) {
  std::string id{name_of(route.verb)};
  std::string_view path = route.path;
  if (path.starts_with("/api/")) path.remove_prefix(4);
  bool raise = true;
  for (const char c : path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (c == '{') id += "By";
    if (letter) id += raise && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    raise = !letter;
  }
  return id;
}

// The path as callers know it: {company_id} is {companyId}, and what is below a path is {path}.
std::string public_path(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t open = std::min(path.find('{'), path.size());
    out += path.substr(0, open);
    path.remove_prefix(open);
    if (path.empty()) break;
    const std::size_t close = path.find('}');
    out += "{" + parameter_name(path.substr(1, close - 1)) + "}";
    path.remove_prefix(close + 1);
  }
  if (out.ends_with("/*")) out.replace(out.size() - 1, 1, "{path}");
  return out;
}

bj::array parameters_of(const Shape& shape, const Route& route) {
  bj::array list;
  for (const Shape::Parameter& parameter : shape.parameters) {
    list.push_back({{"name", parameter.name},
                    {"in", parameter.in == Shape::In::path ? "path" : "query"},
                    {"required", parameter.need == Shape::Need::required},
                    {"schema", parameter.schema}});
  }
  if (route.path.ends_with("/*")) {
    list.push_back({{"name", "path"},
                    {"in", "path"},
                    {"required", true},
                    {"schema", bj::object{{"type", "string"}}}});
  }
  const auto add_header = [&](std::string_view name, std::string_view says) {
    list.push_back({{"name", name},
                    {"in", "header"},
                    {"required", false},
                    {"description", says},
                    {"schema", bj::object{{"type", "string"}}}});
  };
  if (route.verb == Verb::post) {
    add_header("Idempotency-Key", "The same key and request get the first answer again.");
  }
  if (route.verb == Verb::patch) {
    add_header("If-Match", "Act only on the version with this ETag.");
  }
  if (shape.answer_type == "text/event-stream") {
    add_header("Last-Event-ID", "Continue behind this event.");
  }
  return list;
}

bj::object success_of(const Shape& shape) {
  bj::object success = with_description("Success");
  bj::object headers;
  for (const std::string& name : shape.answer_headers) {
    headers[name] = bj::object{{"schema", bj::object{{"type", "string"}}}};
  }
  if (!headers.empty()) success["headers"] = std::move(headers);
  if (shape.answer) {
    success["content"] = content(shape.answer_type, *shape.answer);
  } else if (!shape.answer_type.empty()) {
    success["content"] = content(shape.answer_type, {{"type", "string"}});
  }
  return success;
}

bj::object operation(const Route& route, SchemaBook& book) {
  const Shape shape = route.describe ? route.describe(book) : Shape{};
  bj::object out{{"operationId", operation_id(route)},
                 {"summary", route.says},
                 {"tags", bj::array{route.tag}},
                 {"x-berth-permission", name_of(route.needs)}};
  bj::array parameters = parameters_of(shape, route);
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (shape.body) {
    out["requestBody"] =
        bj::object{{"required", true}, {"content", content(shape.body_type, *shape.body)}};
  }
  out["responses"] = bj::object{
      {std::to_string(route.status), success_of(shape)},
      {"default", bj::object{{"$ref", "#/components/responses/Error"}}},
  };
  if (route.needs == core::Permission::open) out["security"] = bj::array{};
  return out;
}

bj::array tags_of(const std::vector<Route>& routes) {
  bj::array tags;
  std::vector<std::string_view> seen;
  for (const Route& route : routes) {
    if (std::ranges::find(seen, route.tag) != seen.end()) continue;
    seen.push_back(route.tag);
    tags.push_back({{"name", route.tag}});
  }
  return tags;
}

}  // namespace

bj::object openapi_document(const std::vector<Route>& routes, const ApiTitle& title) {
  SchemaBook book{"#/components/schemas/"};
  bj::object paths;
  for (const Route& route : routes) {
    bj::value& path = paths[public_path(route.path)];
    if (!path.is_object()) path = bj::object{};
    path.get_object()[name_of(route.verb)] = operation(route, book);
  }
  bj::object schemas = book.components();
  schemas["Error"] = error_schema();
  bj::object error = with_description("The request failed; `code` says why");
  error["content"] = content("application/json", {{"$ref", "#/components/schemas/Error"}});

  bj::object info{{"title", title.title}, {"version", title.version}};
  if (!title.description.empty()) info["description"] = title.description;
  return {
      {"openapi", "3.1.0"},
      {"info", std::move(info)},
      {"tags", tags_of(routes)},
      {"security", bj::array{bj::object{{"bearer", bj::array{}}}}},
      {"paths", std::move(paths)},
      {"components",
       bj::object{
           {"schemas", std::move(schemas)},
           {"responses", bj::object{{"Error", std::move(error)}}},
           {"securitySchemes",
            bj::object{{"bearer", bj::object{{"type", "http"}, {"scheme", "bearer"}}}}},
       }},
  };
}

}  // namespace berth::http
