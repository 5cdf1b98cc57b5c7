#include "base/json/config_form.hpp"

#include "base/strings.hpp"

#include <charconv>
#include <cmath>

namespace berth::form_detail {
namespace {

std::string number_text(double value) {
  if (std::trunc(value) == value) return std::to_string(static_cast<std::int64_t>(value));
  std::string text = std::to_string(value);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string_view view(const bj::string& text) {
  return {text.data(), text.size()};
}

std::optional<std::string> passed_range(double value, const Note& note, RangeWords words) {
  const bool is_low = note.low && !(value >= *note.low);
  const bool is_high = note.high && !(value <= *note.high);
  if (!is_low && !is_high) return std::nullopt;
  if (words == RangeWords::both && note.low && note.high) {
    return "must be from " + number_text(*note.low) + " to " + number_text(*note.high);
  }
  return is_low ? "must be at least " + number_text(*note.low)
                : "must be at most " + number_text(*note.high);
}

std::optional<std::string> broken_rule(const bj::value& value, const Note& note) {
  if (note.rule == nullptr) return std::nullopt;
  if (const bj::string* text = value.if_string()) {
    const std::string_view wrong = note.rule->wrong(view(*text));
    return wrong.empty() ? std::nullopt : std::optional{std::string{wrong}};
  }
  const bj::array* list = value.if_array();
  if (list == nullptr) return std::nullopt;
  for (const bj::value& item : *list) {
    if (auto wrong = broken_rule(item, note)) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> too_long(const bj::value& value, const Note& note) {
  if (!note.most) return std::nullopt;
  const bj::string* text = value.if_string();
  const bj::array* list = value.if_array();
  if (text != nullptr && text->size() > *note.most) {
    return "has " + std::to_string(text->size()) + " bytes; the limit is " +
           std::to_string(*note.most);
  }
  if (list != nullptr && list->size() > *note.most) {
    return "has more than " + std::to_string(*note.most) + " elements";
  }
  return std::nullopt;
}

std::optional<std::string> violation(const bj::value& value, const Note& note, RangeWords words) {
  if (value.is_number()) return passed_range(value.to_number<double>(), note, words);
  if (auto broken = broken_rule(value, note)) return broken;
  return too_long(value, note);
}

// A rule in the schema of a text, or of the texts in a list.
void add_rule(bj::object& schema, const TextRule& rule) {
  bj::object& texts = schema.contains("items") ? schema.at("items").as_object() : schema;
  texts["pattern"] = rule.pattern;
  texts["x-berth-rule"] = rule.says;
}

}  // namespace

bool is_blank(const bj::value& value) {
  return value.is_null() || (value.is_string() && value.get_string().empty());
}

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
  if (note.low) schema["minimum"] = number(*note.low);
  if (note.high) schema["maximum"] = number(*note.high);
  if (note.required && schema["type"] == "string") schema["minLength"] = 1;
  if (note.rule != nullptr) add_rule(schema, *note.rule);
  // Characters, of which there are never more than bytes: what the schema accepts may still be too
  // long in bytes.
  if (note.most) {
    schema[schema["type"] == "array" ? "maxItems" : "maxLength"] =
        static_cast<std::int64_t>(*note.most);
  }
  if (!note.format.empty()) schema["format"] = note.format;
  if (!note.value_key.empty()) schema["x-berth-value-key"] = note.value_key;
  if (note.advanced) schema["x-paperclip-advanced"] = true;
  if (!note.group.empty()) schema["x-paperclip-group"] = note.group;
  if (note.hidden) schema["x-berth-hidden"] = true;
}

void add_usual(bj::object& schema, const Note& note) {
  if (note.usual.empty()) return;
  if (auto usual = parse_json(note.usual)) schema["default"] = *std::move(usual);
}

bool violates(const bj::value* value, const Note& note, RangeWords words, const JsonAt& at,
              JsonIssues& issues) {
  if (note.required && (value == nullptr || is_blank(*value))) {
    issues.add(at, std::string{note.missing.empty() ? "is required" : note.missing});
    return true;
  }
  if (value == nullptr) return false;
  std::optional<std::string> why = violation(*value, note, words);
  if (!why) return false;
  issues.add(at, note.wrong.empty() ? *std::move(why) : std::string{note.wrong});
  return true;
}

void trim(bj::value& value) {
  if (bj::string* text = value.if_string()) *text = bj::string(trimmed(view(*text)));
}

void read_number(bj::value& value) {
  if (!value.is_string()) return;
  const std::string_view text = trimmed(view(value.get_string()));
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc{} && stop == end) value = number;
}

}  // namespace berth::form_detail
