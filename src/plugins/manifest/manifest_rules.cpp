#include "plugins/manifest/manifest_rules.hpp"

#include "base/strings.hpp"
#include "core/config/environment_config.hpp"

#include <algorithm>

namespace berth::plugins::rules {
namespace {

std::string range_of(Length length) {
  return std::to_string(length.least) + " to " + std::to_string(length.most) + " are allowed";
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

void ObjectReader::wrong(std::string_view key, std::string message) const {
  issues_.add(JsonAt{at_, key}, std::move(message));
}

std::optional<std::string> ObjectReader::text(std::string_view key, Presence presence,
                                              Length length) const {
  const bj::value* value = find(key);
  if (value == nullptr) {
    if (presence == Presence::required) wrong(key, "required: is missing");
    return std::nullopt;
  }
  if (!value->is_string()) {
    wrong(key, "type: is not a string");
    return std::nullopt;
  }
  std::string text{value->get_string().data(), value->get_string().size()};
  const std::size_t count = characters_in(text);
  if (count >= length.least && count <= length.most) return text;
  wrong(key, "length: has " + std::to_string(count) + " characters, " + range_of(length));
  return std::nullopt;
}

std::optional<std::string> ObjectReader::key_text(std::string_view key, Presence presence) const {
  std::optional<std::string> value = text(key, presence, {1});
  if (!value || core::is_provider_key(*value)) return value;
  wrong(key, "pattern: " + in_quotes(*value) + " does not match ^[a-z0-9][a-z0-9._-]*$");
  return std::nullopt;
}

std::optional<bool> ObjectReader::flag(std::string_view key) const {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  wrong(key, "type: is not a boolean");
  return std::nullopt;
}

std::vector<std::string> ObjectReader::texts(std::string_view key, Length count,
                                             Length length) const {
  std::vector<std::string> all;
  const bj::array* values = list(key);
  if (values == nullptr) return all;
  if (values->size() < count.least || values->size() > count.most) {
    wrong(key, "count: has " + std::to_string(values->size()) + " entries, " + range_of(count));
  }
  const JsonAt here{at_, key};
  for (std::size_t i = 0; i < values->size(); ++i) {
    const bj::string* text = (*values)[i].if_string();
    const JsonAt entry{here, i};
    if (text == nullptr) {
      issues_.add(entry, "type: is not a string");
      continue;
    }
    const std::size_t size = characters_in({text->data(), text->size()});
    if (size < length.least || size > length.most) {
      issues_.add(entry,
                  "length: has " + std::to_string(size) + " characters, " + range_of(length));
      continue;
    }
    all.emplace_back(text->data(), text->size());
  }
  return all;
}

const bj::object* ObjectReader::child(std::string_view key, Presence presence) const {
  const bj::value* value = find(key);
  if (value == nullptr) {
    if (presence == Presence::required) wrong(key, "required: is missing");
    return nullptr;
  }
  if (value->is_object()) return &value->get_object();
  wrong(key, "type: is not an object");
  return nullptr;
}

const bj::array* ObjectReader::list(std::string_view key) const {
  const bj::value* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return &value->get_array();
  wrong(key, "type: is not an array");
  return nullptr;
}

std::optional<bj::object> ObjectReader::schema(std::string_view key, Presence presence) const {
  const bj::object* value = child(key, presence);
  if (value == nullptr) return std::nullopt;
  const bj::value* type = value->if_contains("type");
  if (type != nullptr && !type->is_string()) {
    issues_.add(JsonAt{JsonAt{at_, key}, "type"}, "schema-shape: is not a string");
    return std::nullopt;
  }
  const bool composed = value->contains("$ref") || value->contains("oneOf") ||
                        value->contains("anyOf") || value->contains("allOf");
  if (value->empty() || type != nullptr || composed) return *value;
  wrong(key, "schema-shape: has neither a type nor $ref, oneOf, anyOf or allOf");
  return std::nullopt;
}

std::optional<std::string> ObjectReader::one_of(std::string_view key, Presence presence,
                                                std::span<const std::string_view> allowed) const {
  std::optional<std::string> value = text(key, presence, {});
  if (!value || is_among(allowed, *value)) return value;
  std::string names;
  for (const std::string_view name : allowed)
    names += (names.empty() ? "" : ", ") + std::string{name};
  wrong(key, "one-of: is " + in_quotes(*value) + ", allowed are " + names);
  return std::nullopt;
}

void ObjectReader::only(std::span<const std::string_view> known) const {
  for (const auto& entry : object_) {
    const std::string_view key{entry.key().data(), entry.key().size()};
    if (!is_among(known, key)) wrong(key, "unknown-key: is not a known field");
  }
}

void each_object(const ObjectReader& parent, std::string_view key,
                 const std::function<void(const ObjectReader&)>& read) {
  const bj::array* entries = parent.list(key);
  if (entries == nullptr) return;
  const JsonAt here{parent.at(), key};
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const JsonAt at{here, i};
    if (const bj::object* object = (*entries)[i].if_object()) {
      read(ObjectReader{*object, at, parent.issues()});
    } else {
      parent.issues().add(at, "type: is not an object");
    }
  }
}

void each_unique(const ObjectReader& parent, std::string_view key, std::string_view name,
                 const std::function<void(const ObjectReader&)>& read) {
  std::set<std::string> seen;
  each_object(parent, key, [&](const ObjectReader& entry) {
    const bj::value* own = entry.find(name);
    if (own != nullptr && own->is_string()) {
      const std::string text{own->get_string().data(), own->get_string().size()};
      if (!seen.insert(text).second) {
        entry.wrong(name, "unique: " + in_quotes(text) + " is there twice");
      }
    }
    read(entry);
  });
}

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

bool is_field_name(std::string_view text) {
  const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; };
  return !text.empty() && (is_letter(text.front()) || text.front() == '_') &&
         std::ranges::all_of(text, fits);
}

bool is_cron(std::string_view text) {
  std::size_t fields = 0;
  bool inside = false;
  for (const char c : text) {
    if (c == ' ') {
      inside = false;
      continue;
    }
    if (!is_digit(c) && c != '*' && c != '/' && c != '-' && c != ',') return false;
    if (!inside) ++fields;
    inside = true;
  }
  return fields == 5;
}

}  // namespace berth::plugins::rules
