#include "base/json/loose.hpp"

namespace berth::loose {

std::optional<std::string> text_at(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return std::string{found->get_string()};
}

bool is_true_at(const bj::object& object, std::string_view key) {
  const bj::value* found = object.if_contains(key);
  return found != nullptr && found->is_bool() && found->get_bool();
}

}  // namespace berth::loose
