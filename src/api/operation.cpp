#include "api/operation.hpp"

#include "base/json/peek.hpp"

#include <algorithm>

namespace berth::api {
namespace {

constexpr std::string_view definitions = "#/$defs/";

bool has_field(const std::vector<Field>& fields, std::string_view name) {
  return std::ranges::any_of(fields, [&](const Field& field) { return field.name == name; });
}

Result<Arguments> split(const Entry& entry, const bj::value& input) {
  if (!input.is_object()) {
    return fail(Errc::validation_failed, "the input of " + entry.name + " is not an object",
                "send its fields as one JSON object");
  }
  Arguments given;
  bj::object body;
  for (const auto& [key, value] : input.get_object()) {
    const bool is_target = has_field(entry.target, key);
    const bool is_option = has_field(entry.options, key);
    (is_target ? given.target : is_option ? given.options : body)[key] = value;
  }
  given.body = [sent = bj::value(std::move(body))]() -> Result<bj::value> { return sent; };
  return given;
}

void add_fields(bj::object& properties, bj::array& required, const std::vector<Field>& fields,
                std::vector<bj::object> schemas) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    properties[fields[i].name] = std::move(schemas[i]);
    if (fields[i].need == Need::required) required.emplace_back(fields[i].name);
  }
}

const bj::object& referred_to(const bj::object& components, const bj::value& reference) {
  const std::string_view pointer{reference.get_string()};
  return components.at(pointer.substr(definitions.size())).get_object();
}

// The components that a schema refers to, and those that they refer to.
void collect(const bj::value& schema, const bj::object& components, bj::object& found) {
  if (const bj::array* list = schema.if_array()) {
    for (const bj::value& each : *list) collect(each, components, found);
  }
  const bj::object* object = schema.if_object();
  if (object == nullptr) return;
  for (const auto& [key, value] : *object) {
    if (key != "$ref") {
      collect(value, components, found);
      continue;
    }
    const std::string_view name = std::string_view{value.get_string()}.substr(definitions.size());
    const bj::object& component = referred_to(components, value);
    if (found.emplace(name, component).second) collect(component, components, found);
  }
}

bj::object with_definitions(bj::object schema, const bj::object& components) {
  bj::object found;
  collect(bj::value(schema), components, found);
  if (!found.empty()) schema["$defs"] = std::move(found);
  return schema;
}

}  // namespace

Task<bj::value> Entry::call(core::Call who, bj::value input) const {
  BERTH_CO_TRY(Arguments given, split(*this, input));
  BERTH_CO_TRY(const Reply reply, co_await run(std::move(who), std::move(given)));
  BERTH_CO_TRY(bj::value answer, parse_json(reply.json));
  if (answers != AnswerKind::page) co_return answer;
  co_return bj::value(bj::object{{"rows", std::move(answer)}, {"next", encode(reply.next)}});
}

bj::object Entry::input_schema() const {
  SchemaBook book{std::string{definitions}};
  Shape shape = describe(book);
  bj::object properties;
  bj::array required;
  add_fields(properties, required, target, std::move(shape.target));
  add_fields(properties, required, options, std::move(shape.options));
  if (shape.body) {
    const bj::object& body = referred_to(book.components(), shape.body->at("$ref"));
    for (const auto& [key, value] : body.at("properties").get_object()) properties[key] = value;
    if (const bj::array* names = array_in(body, "required")) {
      for (const bj::value& each : *names) required.push_back(each);
    }
  }
  bj::object schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return with_definitions(std::move(schema), book.components());
}

bj::object Entry::answer_schema() const {
  SchemaBook book{std::string{definitions}};
  bj::object schema = describe(book).answer;
  if (answers == AnswerKind::page) {
    const bj::object cursor = json_detail::nullable({{"type", "string"}});
    schema = {{"type", "object"},
              {"properties", bj::object{{"rows", std::move(schema)}, {"next", cursor}}},
              {"required", bj::array{"rows", "next"}}};
  }
  return with_definitions(std::move(schema), book.components());
}

}  // namespace berth::api
