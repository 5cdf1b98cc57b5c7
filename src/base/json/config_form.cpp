#include "base/json/config_form.hpp"

#include <cmath>

namespace berth::sdk::form_detail {
namespace {

bool is_blank(const bj::value& value) {
  return value.is_null() || (value.is_string() && value.get_string().empty());
}

}  // namespace

bj::value number(double value) {
  constexpr double exact_max = 9e15;
  if (std::trunc(value) != value || std::abs(value) > exact_max) return value;
  return static_cast<std::int64_t>(value);
}

void annotate(bj::object& schema, const Note& note) {
  if (!note.title.empty()) {
    std::string title{note.title};
    if (!note.unit.empty()) title += " (" + std::string{note.unit} + ")";
    schema["title"] = title;
  }
  if (!note.says.empty()) schema["description"] = note.says;
  if (note.low) schema["minimum"] = *note.low;
  if (note.high) schema["maximum"] = *note.high;
  if (note.required && schema["type"] == "string") schema["minLength"] = 1;
  if (note.advanced) schema["x-paperclip-advanced"] = true;
  if (!note.group.empty()) schema["x-paperclip-group"] = note.group;
}

void check(const bj::object& given, std::string_view key, const Note& note, const JsonAt& at,
           JsonIssues& issues) {
  const bj::value* value = given.if_contains(key);
  if (note.required && (value == nullptr || is_blank(*value))) issues.add(at, "is required");
  if (value == nullptr || !value->is_number()) return;
  const double number = value->to_number<double>();
  if (note.low && number < static_cast<double>(*note.low)) {
    issues.add(at, "must be at least " + std::to_string(*note.low));
  }
  if (note.high && number > static_cast<double>(*note.high)) {
    issues.add(at, "must be at most " + std::to_string(*note.high));
  }
}

}  // namespace berth::sdk::form_detail
