#pragma once

#include "base/assert.hpp"
#include "base/json/json.hpp"

#include <cctype>

namespace berth {

// Writes the JSON Schema of described types. Structs become named components, each written once and
// referenced.
class SchemaBook {
 public:
  // `prefix` is where components are in the document: "#/components/schemas/" in OpenAPI,
  // "#/$defs/" elsewhere.
  explicit SchemaBook(std::string prefix) : prefix_(std::move(prefix)) {}

  template <class T>
  bj::object schema();

  const bj::object& components() const { return components_; }

 private:
  template <class T, class... M>
  bj::object struct_schema(boost::mp11::mp_list<M...> members);

  std::string prefix_;
  bj::object components_;
  std::map<std::string, std::string_view> types_;  // the type behind each name
};

namespace json_detail {

// A type as the compiler spells it, with its namespaces.
template <class T>
std::string_view full_type_name() {
  const std::string_view whole = __PRETTY_FUNCTION__;
  const std::size_t from = whole.find("T = ") + 4;
  return whole.substr(from, whole.rfind(']') - from);
}

// The unqualified name of a type.
template <class T>
std::string type_name() {
  std::string_view name = full_type_name<T>();
  const std::size_t angle = name.find('<');
  const std::size_t colon = name.substr(0, angle).rfind("::");
  if (colon != std::string_view::npos) name = name.substr(colon + 2);
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  }
  return out;
}

template <class T>
inline constexpr bool may_be_absent = is_a<T, std::optional> || is_a<T, Patch>;

inline bj::object nullable(bj::object schema) {
  return {{"anyOf", bj::array{std::move(schema), bj::object{{"type", "null"}}}}};
}

}  // namespace json_detail

template <class T>
bj::object SchemaBook::schema() {
  using namespace json_detail;
  if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::integral<T>) {
    return {{"type", "integer"}};
  } else if constexpr (std::floating_point<T>) {
    return {{"type", "number"}};
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::same_as<T, Secret>) {
    return {{"type", "string"}, {"format", "password"}, {"writeOnly", true}};
  } else if constexpr (std::same_as<T, Time>) {
    return {{"type", "string"}, {"format", "date-time"}};
  } else if constexpr (is_id<T>) {
    return {{"type", "string"}, {"format", "uuid"}};
  } else if constexpr (std::same_as<T, bj::value>) {
    return {};
  } else if constexpr (std::same_as<T, bj::object>) {
    return {{"type", "object"}, {"additionalProperties", true}};
  } else if constexpr (std::same_as<T, bj::array>) {
    return {{"type", "array"}, {"items", bj::object{}}};
  } else if constexpr (DescribedEnum<T>) {
    bj::array names;
    for (const T value : all<T>()) names.emplace_back(name_of(value));
    return {{"type", "string"}, {"enum", std::move(names)}};
  } else if constexpr (is_a<T, std::optional>) {
    return nullable(schema<typename T::value_type>());
  } else if constexpr (is_a<T, Patch>) {
    return nullable(schema<typename decltype(T::value)::value_type>());
  } else if constexpr (is_a<T, std::vector>) {
    return {{"type", "array"}, {"items", schema<typename T::value_type>()}};
  } else if constexpr (is_a<T, std::map>) {
    return {{"type", "object"}, {"additionalProperties", schema<typename T::mapped_type>()}};
  } else {
    static_assert(DescribedStruct<T>, "describe the struct with BOOST_DESCRIBE_STRUCT");
    const std::string name = type_name<T>();
    const std::string_view type = types_.emplace(name, full_type_name<T>()).first->second;
    BERTH_ASSERT(type == full_type_name<T>());  // two types with one name: rename one of them
    if (!components_.contains(name)) {
      components_[name] =
          nullptr;  // a placeholder while its own members are written, so that recursion ends
      components_[name] = struct_schema<T>(MembersOf<T>{});
    }
    return {{"$ref", prefix_ + name}};
  }
}

template <class T, class... M>
bj::object SchemaBook::struct_schema(boost::mp11::mp_list<M...> /*members*/) {
  using namespace json_detail;
  bj::object properties;
  bj::array required;
  const auto add = [&]<class Member>(Member /*member*/) {
    using Field = FieldOf<T, Member>;
    properties.emplace(wire_name<Member>(), schema<Field>());
    if (!may_be_absent<Field>) required.emplace_back(wire_name<Member>());
  };
  (add(M{}), ...);
  bj::object out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

}  // namespace berth
