#include "http/server/message/message.hpp"

namespace berth::http {
namespace {

constexpr char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

std::string method_of(Verb verb) {
  std::string name{name_of(verb)};
  std::ranges::transform(name, name.begin(), upper);
  return name;
}

void Headers::add(std::string_view name, std::string_view value) {
  entries_.push_back({static_cast<std::uint32_t>(text_.size()),
                      static_cast<std::uint32_t>(name.size()),
                      static_cast<std::uint32_t>(value.size())});
  text_.append(name).append(value);
}

std::optional<std::string_view> Headers::find(std::string_view wanted) const {
  for (const Entry& entry : entries_) {
    if (equal_ignoring_case(name(entry), wanted)) return value(entry);
  }
  return std::nullopt;
}

std::size_t Headers::count(std::string_view wanted) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [&](const Entry& entry) { return equal_ignoring_case(name(entry), wanted); }));
}

void Headers::clear() {
  text_.clear();
  entries_.clear();
}

std::string_view Headers::name(const Entry& entry) const {
  return std::string_view{text_}.substr(entry.at, entry.name_size);
}

std::string_view Headers::value(const Entry& entry) const {
  return std::string_view{text_}.substr(entry.at + entry.name_size, entry.value_size);
}

std::optional<std::string> Request::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found ? std::optional{std::string{*found}} : std::nullopt;
}

std::optional<std::string> Response::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

}  // namespace berth::http
