#include "providers/metadata.hpp"

#include "base/json/peek.hpp"

namespace berth::providers {

std::optional<std::string> text_at(const bj::object& object, std::string_view key) {
  return peek<std::string>(object, key);
}

bool is_true_at(const bj::object& object, std::string_view key) {
  return is_true_in(object, key);
}

}  // namespace berth::providers
