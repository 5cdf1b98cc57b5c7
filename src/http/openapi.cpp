#include "http/openapi.hpp"

#include "base/json/json_schema.hpp"

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

bj::object bytes_schema() {
  return {{"type", "string"}, {"format", "binary"}};
}

bool is_relay(const Route& route) {
  return std::holds_alternative<RelayHandler>(route.handler);
}

// A relay takes any method; these are all that the document has a word for.
std::vector<std::string_view> documented_methods(const Route& route) {
  if (!is_relay(route)) return {name_of(route.verb)};
  return {"get", "put", "post", "delete", "options", "head", "patch", "trace"};
}

// "get" and "/api/companies/{company}/agents" become "getCompaniesByCompanyAgents".
std::string operation_id(std::string_view method, std::string_view path) {
  std::string id{method};
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

// The path as callers know it: {company_id} becomes {companyId}, and "*" becomes {path}.
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
                    {"description", "All that is left of the path, as it is: with its slashes."},
                    {"schema", bj::object{{"type", "string"}}}});
  }
  const auto add_header = [&](std::string_view name, std::string_view says) {
    list.push_back({{"name", name},
                    {"in", "header"},
                    {"required", false},
                    {"description", says},
                    {"schema", bj::object{{"type", "string"}}}});
  };
  // A relay has neither: its verb is `get`, and the server behind it has its own rules.
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

bj::object error_reference() {
  return {{"$ref", "#/components/responses/Error"}};
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

// The object under a key, created if it is missing.
bj::object& object_in(bj::object& parent, std::string_view key) {
  bj::value& found = parent[key];
  return found.is_object() ? found.get_object() : found.emplace_object();
}

void add_other(bj::object& success, const Shape::Other& other) {
  success.emplace("description", "Success");
  if (!other.type.empty()) {
    object_in(success, "content")[other.type] = bj::object{{"schema", bytes_schema()}};
  }
  for (const std::string& name : other.headers) {
    object_in(success, "headers")[name] = bj::object{{"description", "Only with " + other.type},
                                                     {"schema", bj::object{{"type", "string"}}}};
  }
}

bj::object responses_of(const Shape& shape, const Route& route) {
  bj::object responses{{std::to_string(route.status), success_of(shape)}};
  for (const Shape::Other& other : shape.others) {
    const std::string status = std::to_string(other.status.value_or(route.status));
    add_other(object_in(responses, status), other);
  }
  responses["default"] = error_reference();
  return responses;
}

// Body and response belong to the server that the request is passed to.
void describe_relay(bj::object& operation, std::string_view method) {
  const bj::object anything = content("*/*", {});
  if (method != "get" && method != "head" && method != "trace") {
    operation["requestBody"] = bj::object{{"required", false}, {"content", anything}};
  }
  bj::object answer = with_description(
      "What the server answers that the request is passed on to, whatever its status is; or an "
      "Error of this server, which refused to pass it on");
  answer["content"] = anything;
  bj::object responses{{"502", error_reference()}, {"default", std::move(answer)}};
  if (method == "get") responses["101"] = with_description("A WebSocket");
  operation["responses"] = std::move(responses);
}

bj::object operation(const Route& route, std::string_view method, SchemaBook& book) {
  const Shape shape = route.describe ? route.describe(book) : Shape{};
  bj::object out{{"operationId", operation_id(method, route.path)},
                 {"summary", route.says},
                 {"tags", bj::array{route.tag}},
                 {"x-berth-permission", name_of(route.needs)}};
  bj::array parameters = parameters_of(shape, route);
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (shape.body) {
    out["requestBody"] =
        bj::object{{"required", true}, {"content", content(shape.body_type, *shape.body)}};
  }
  out["responses"] = responses_of(shape, route);
  if (is_relay(route)) describe_relay(out, method);
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
    bj::object& path = object_in(paths, public_path(route.path));
    for (const std::string_view method : documented_methods(route)) {
      path[method] = operation(route, method, book);
    }
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
