#include "core/config/config_path.hpp"

#include "base/json/json_keys.hpp"

#include <charconv>

namespace berth::core {
namespace {

bj::value* element_of(bj::value& in, const std::string& step) {
  if (bj::object* const object = in.if_object()) return object->if_contains(step);
  bj::array* const array = in.if_array();
  if (array == nullptr) return nullptr;
  std::size_t index = 0;
  const char* const end = step.data() + step.size();
  const auto [stop, error] = std::from_chars(step.data(), end, index);
  const bool in_range = error == std::errc{} && stop == end && index < array->size();
  return in_range ? &(*array)[index] : nullptr;
}

// The value that contains the last step; null when the path does not lead there.
bj::value* holder_of(bj::value& root, const std::vector<std::string>& steps) {
  bj::value* at = &root;
  for (std::size_t i = 0; i + 1 < steps.size() && at != nullptr; ++i) {
    at = element_of(*at, steps[i]);
  }
  return at;
}

// The change applies to a bj::value and is moved back, because a step may lead into an object or an
// array.
template <class Change>
auto change(bj::object& config, Change apply) {
  bj::value root(std::move(config));
  auto answer = apply(root);
  config = std::move(root.as_object());
  return answer;
}

}  // namespace

ConfigPath ConfigPath::parse(std::string_view text) {
  std::vector<std::string> steps(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      steps.back() += text[++i];
    } else if (text[i] == '.') {
      steps.emplace_back();
    } else {
      steps.back() += text[i];
    }
  }
  return ConfigPath{std::move(steps)};
}

std::string ConfigPath::text() const {
  std::string out;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (i > 0) out += '.';
    for (const char c : steps_[i]) {
      if (c == '.' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string ConfigPath::pointer() const {
  std::string out;
  for (const std::string& step : steps_) out += "/" + escaped_in_pointer(step);
  return out;
}

ConfigPath ConfigPath::operator/(std::string_view step) const {
  ConfigPath longer = *this;
  longer.steps_.emplace_back(step);
  return longer;
}

const bj::value* find_at(const bj::object& config, const ConfigPath& path) {
  if (path.steps().empty()) return nullptr;
  const bj::value* at = config.if_contains(path.steps().front());
  for (std::size_t i = 1; i < path.steps().size() && at != nullptr; ++i) {
    // The lookup itself changes nothing.
    at = element_of(const_cast<bj::value&>(*at), path.steps()[i]);
  }
  return at;
}

bool set_at(bj::object& config, const ConfigPath& path, bj::value value) {
  if (path.steps().empty()) return false;
  return change(config, [&](bj::value& root) {
    bj::value* const holder = holder_of(root, path.steps());
    if (holder == nullptr) return false;
    if (bj::object* const object = holder->if_object()) {
      object->insert_or_assign(path.steps().back(), std::move(value));
      return true;
    }
    bj::value* const element = element_of(*holder, path.steps().back());
    if (element == nullptr) return false;
    *element = std::move(value);
    return true;
  });
}

void erase_at(bj::object& config, const ConfigPath& path) {
  if (path.steps().empty()) return;
  change(config, [&](bj::value& root) {
    bj::value* const holder = holder_of(root, path.steps());
    if (holder == nullptr) return false;
    if (bj::object* const object = holder->if_object()) {
      object->erase(path.steps().back());
    } else if (bj::value* const element = element_of(*holder, path.steps().back())) {
      *element = nullptr;
    }
    return true;
  });
}

}  // namespace berth::core
